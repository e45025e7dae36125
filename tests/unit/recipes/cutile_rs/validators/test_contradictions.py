"""What becomes of a good verdict that a validator contradicts."""

import pytest

from farm.fault import Fault, Owner
from farm.pipeline.stage import Reply, Stage, ValidatorExit, Verdict
from farm.recipes.cutile_rs.validators import OF_STAGE, VALIDATORS
from farm.recipes.cutile_rs.validators.contradictions import VERDICTS, contradicted


def reply_to(stage: Stage, *exits: tuple[str, int, str]) -> Reply:
    return contradicted(stage, tuple(ValidatorExit(name=n, exit_code=c, message=m) for n, c, m in exits))


def test_every_validator_of_a_stage_has_a_verdict_and_no_other_has() -> None:
    assert set(VERDICTS) == {(stage, name) for stage, names in OF_STAGE.items() for name in names}
    assert {name for names in OF_STAGE.values() for name in names} == set(VALIDATORS)


def test_b_is_held_to_what_compiles_and_d_to_the_references_tile_ir() -> None:
    assert "kernel" not in OF_STAGE[Stage.B]
    assert OF_STAGE[Stage.D].index("kernel") < OF_STAGE[Stage.D].index("host")


def test_a_kernel_that_does_not_compile_is_bs_failure() -> None:
    found = reply_to(Stage.B, ("entry", 0, "ok"), ("compiles", 1, "kernel: does not compile: k.rs:3:1: x"))
    assert (found.verdict, found.owner, found.fault) == (Verdict.FAIL_COMPILE, Owner.KERNEL, Fault.KERNEL)


def test_other_tile_ir_in_d_is_the_kernels_failure_so_that_c_is_asked() -> None:
    found = reply_to(Stage.D, ("lint", 0, "ok"), ("kernel", 1, "kernel: 2 of 3 signatures differ: muli"))
    assert (found.verdict, found.owner) == (Verdict.FAIL, Owner.KERNEL)
    assert found.summary == "kernel says otherwise: 2 of 3 signatures differ: muli"


@pytest.mark.parametrize(
    ("said", "owner"), [("kernel: a", Owner.KERNEL), ("host: a", Owner.HOST), ("a", Owner.HOST)]
)
def test_the_message_names_the_owner_and_the_table_one_where_it_does_not(said: str, owner: Owner) -> None:
    assert reply_to(Stage.D, ("host", 1, said)).owner is owner


def test_a_validator_that_could_not_be_run_is_the_environments_part() -> None:
    found = reply_to(Stage.D, ("host", 2, "env: no tool"), ("symbol", 1, "host: b"))
    assert (found.verdict, found.owner, found.fault) == (Verdict.BLOCKED, Owner.ENV, Fault.ENV)
    assert "could not be run" in found.summary


def test_the_first_red_one_decides() -> None:
    found = reply_to(Stage.D, ("registration", 1, "host: a"), ("kernel", 1, "kernel: b"))
    assert found.owner is Owner.HOST
    assert [item.name for item in found.validators] == ["registration", "kernel"]

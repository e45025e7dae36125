"""A kernel with a wrong index order: found without a GPU, named by C, repaired by B, and the route goes on."""

import json

import pytest

from containers.toolchain import Toolchain
from farm.fault import Owner
from farm.pipeline.machine import begin, step
from farm.pipeline.routes import read_routes
from farm.pipeline.stage import Reply, Stage, ValidatorExit, Verdict
from farm.recipes.cutile_rs.validators import OF_STAGE
from farm.recipes.cutile_rs.validators.contradictions import contradicted
from tests.box_program import CAPS, RECIPE, Folders

pytestmark = pytest.mark.toolchain

KERNEL = "work/src/minigym/ops/cutile_rs/add_bias_kernel/kernel.rs"


def claimed(verdict: Verdict) -> Reply:
    return Reply(verdict=verdict, owner=None, fault=None, fail_class=None)


def judged(box: Folders, stage: Stage, claim: Verdict) -> Reply:
    """What the orchestrator makes of a good claim: the stage's validators, as far as the first red one."""
    exits = []
    for name in OF_STAGE[stage]:
        said = box.validate(name)
        exits.append(ValidatorExit(name=name, exit_code=said.code, message=said.message))
        if said.code:
            return contradicted(stage, tuple(exits))
    return claimed(claim)


def compared(box: Folders, *, recorded: bool = False) -> str:
    """The kind of the first difference that C's program sees, with or without D's recording."""
    (box.out / "candidate.json").unlink(missing_ok=True)
    if recorded:
        done = box.run("containers.box.program", "D")
        assert done.stdout.splitlines()[-1].startswith("FAIL kernel: Tile IR differs")
    assert box.run("containers.box.program", "C").returncode == 1
    (finding, *_) = json.loads((box.out / "ir-diagnosis.json").read_text(encoding="utf-8"))
    return str(finding["message"]).split(": ")[1]


def test_it_walks_b_d_c_b_d_and_e(toolchain: Toolchain, tmp_path) -> None:
    box = Folders(tmp_path / "add_bias", toolchain)
    box.begin("add_bias")
    assert box.run("containers.box").returncode == 0
    right = (box.root / KERNEL).read_text(encoding="utf-8")
    assert "[i, j]" in right
    table = read_routes((RECIPE / "routes.toml").read_text(encoding="utf-8"), CAPS)
    state = step(table, begin(table), claimed(Verdict.PASS)).state

    (box.root / KERNEL).write_text(right.replace("[i, j]", "[j, i]", 1), encoding="utf-8")
    walked = []
    for stage, claim in (
        (Stage.B, Verdict.COMPILED),
        (Stage.D, Verdict.DEFERRED),
        (Stage.C, Verdict.FAIL_FIXABLE),
        (Stage.B, Verdict.COMPILED),
        (Stage.D, Verdict.DEFERRED),
    ):
        assert state is not None
        assert state.stage is stage
        if stage is Stage.C:
            assert compared(box) == compared(box, recorded=True) == "data flow"
            reply = Reply(verdict=claim, owner=Owner.KERNEL, fault=None, fail_class=None)
            (box.root / KERNEL).write_text(right, encoding="utf-8")
        else:
            reply = judged(box, stage, claim)
        walked.append((stage, reply.verdict, reply.owner))
        state = step(table, state, reply).state
    assert walked == [
        (Stage.B, Verdict.COMPILED, None),
        (Stage.D, Verdict.FAIL, Owner.KERNEL),
        (Stage.C, Verdict.FAIL_FIXABLE, Owner.KERNEL),
        (Stage.B, Verdict.COMPILED, None),
        (Stage.D, Verdict.DEFERRED, None),
    ]
    assert state is not None
    assert state.stage is Stage.E

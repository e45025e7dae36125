"""Stage A's reply to what the trace program left."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box.fake_io import FakeBoxIO, ends
from farm.analysis import Analysis, RowStatus
from farm.fault import Fault, Owner
from farm.pipeline.stage import Reply, Verdict
from farm.recipes import ProcessResult
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS, analyse
from farm.recipes.cutile_rs.stages.compare import compare_ir
from farm.recipes.cutile_rs.stages.tools import load, save
from farm.tree import write_tree
from tests.unit.recipes.cutile_rs.builders import layout, minigym, op_named
from tests.unit.recipes.cutile_rs.stages.builders import (
    MADE,
    ORDER,
    OTHER_IR,
    analysis,
    mate,
    row,
    write_ir,
    write_reference,
)

OP = op_named(minigym(), "relu")
Leave = Callable[[Path], ProcessResult]


def analysed(tmp_path: Path, leave: Leave) -> tuple[Reply, FakeBoxIO]:
    def process(argv: Sequence[str]) -> ProcessResult:
        request = json.loads(Path(argv[-1]).read_text())
        assert (request["mode"], request["backend"]) == ("reference", "cutile")
        return leave(Path(request["out"]))

    io = FakeBoxIO(tmp_path, process)
    return analyse(ORDER, io, OP), io


def leaves(found: Analysis, output: str = "") -> Leave:
    def leave(out: Path) -> ProcessResult:
        write_reference(out, found)
        return ends(0, output)

    return leave


def test_a_traced_op_passes_and_its_analysis_is_kept(tmp_path: Path) -> None:
    reply, io = analysed(tmp_path, leaves(analysis(row(), row("t[1]", status=RowStatus.SKIPPED, launches=0))))
    assert reply.verdict is Verdict.PASS
    assert reply.summary == "2 rows collected, 1 traced; 1 launches, 1 signatures"
    assert load(io.out / ANALYSIS, Analysis).traced == 1


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (analysis(), "no row of backend cutile"),
        (analysis(row(status=RowStatus.SKIPPED, launches=0)), "is skipped"),
        (analysis(row(launches=0), row("t[1]", launches=0)), "launches a kernel"),
    ],
    ids=["no row", "all skipped", "no launch"],
)
def test_an_op_about_which_nothing_can_be_proven_is_void(tmp_path: Path, found: Analysis, words: str) -> None:
    reply, _ = analysed(tmp_path, leaves(found))
    assert (reply.verdict, reply.fault) == (Verdict.BLOCKED, Fault.UNSUPPORTED)
    assert reply.summary.startswith("void: ")
    assert words in reply.summary
    assert reply.findings[0].advice


def test_an_op_without_tests_is_void_and_nothing_is_run(tmp_path: Path) -> None:
    io = FakeBoxIO(tmp_path, lambda _: ends(1))
    reply = analyse(ORDER, io, replace(OP, tests=()))
    assert reply.summary.startswith("void: ")
    assert io.started == []


def test_a_row_that_cannot_be_traced_blocks_with_its_reason(tmp_path: Path) -> None:
    failed = row("t[1]", status=RowStatus.FAILED, reason="values were needed", launches=0)
    reply, _ = analysed(tmp_path, leaves(analysis(row(), failed)))
    assert (reply.verdict, reply.fault) == (Verdict.BLOCKED, Fault.UNSUPPORTED)
    assert reply.findings[0].message == "row t[1]: values were needed"


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_test_file_that_cannot_be_collected_blocks_and_names_the_missing_module(
    tmp_path: Path, exit_code: int
) -> None:
    missing = "E   ModuleNotFoundError: No module named 'transformers.models'"
    text = f"not collected: tests/ops/test_relu.py: {missing}\n"

    def leave(out: Path) -> ProcessResult:
        if exit_code == 0:
            write_reference(out, analysis(row()))
        return ends(exit_code, f"warning: x\n{text}rows collected 1, traced 1\n")

    reply, _ = analysed(tmp_path, leave)
    assert (reply.verdict, reply.fault) == (Verdict.BLOCKED, Fault.UNSUPPORTED)
    assert "tests/ops/test_relu.py" in reply.summary
    assert "No module named 'transformers.models'" in reply.summary
    assert "no Python package transformers:" in (reply.findings[0].advice or "")


@pytest.mark.parametrize(
    ("ended", "fault"), [(ends(2, "usage"), Fault.ENV), (ends(-9, "", timed_out=True), Fault.HANG)]
)
def test_a_trace_program_that_fails_is_the_environments(
    tmp_path: Path, ended: ProcessResult, fault: Fault
) -> None:
    reply, _ = analysed(tmp_path, lambda _: ended)
    assert (reply.verdict, reply.owner, reply.fault) == (Verdict.BLOCKED, Owner.ENV, fault)


def recorded(tmp_path: Path, candidate: Path | None) -> Reply:
    """Stage C after stage D has recorded rows whose module is `candidate`."""
    io = FakeBoxIO(tmp_path, lambda _: ends(1))
    save(io, ANALYSIS, analysis(row()))
    write_reference(io.out, analysis(row()))
    if candidate is not None:
        save(io, "candidate.json", [mate()])
        write_ir(io.out / "candidate" / MADE.ir, candidate)
    write_tree(minigym(), io.workspace)
    return compare_ir(ORDER, io, layout(), OP)


def test_c_blames_the_kernel_exactly_when_tile_ir_differs(tmp_path: Path) -> None:
    same = recorded(tmp_path / "same", OTHER_IR.with_name("relu_kernel.mlir"))
    assert same.verdict is Verdict.PASS
    other = recorded(tmp_path / "other", OTHER_IR)
    assert (other.verdict, other.owner) == (Verdict.FAIL_FIXABLE, Owner.KERNEL)
    never = recorded(tmp_path / "never", None)
    assert (never.verdict, never.owner) == (Verdict.BLOCKED, Owner.KERNEL)

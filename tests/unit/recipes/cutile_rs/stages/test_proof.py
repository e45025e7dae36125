"""From recorded rows and Tile IR to a proof, a reply and a gate report."""

from dataclasses import replace
from pathlib import Path

import pytest

from containers.box.fake_io import ends
from farm.acceptance import Judgement, decide
from farm.analysis import BRANCH, NO_LAUNCH, Analysis, CandidateRow, HostStep, RowStatus
from farm.crate import Build
from farm.fault import Fault, Owner
from farm.gates import Basis, GateName, GateReport, Ruling
from farm.job import Accept
from farm.pipeline.stage import Finding, Verdict
from farm.recipes.cutile_rs.judge import report
from farm.recipes.cutile_rs.stages.host import judged
from farm.recipes.cutile_rs.stages.launched import Compiled
from farm.recipes.cutile_rs.stages.proof import Proof, compare_all
from tests.unit.recipes.cutile_rs.stages.builders import (
    ARGS,
    IR,
    MADE,
    ORDER,
    OTHER_IR,
    READ,
    SIGNATURE,
    X,
    Y,
    analysis,
    folders,
    mate,
    row,
    write_ir,
)

TOOK_A_WAY = HostStep(after=0, what=BRANCH, tensors=(replace(ARGS[0], name="0"),))


def proven(tmp_path: Path, found: Analysis, *rows: CandidateRow, candidate: Path | None = None) -> Proof:
    reference, made = folders(tmp_path) if candidate is None else folders(tmp_path, candidate)
    return compare_all(found, rows, reference, made, "sm_90")


def judgement(found: Analysis, proof: Proof, accept: Accept = Accept.CERTIFIED) -> Judgement:
    return decided(report(ORDER, found, proof), accept)


def decided(given: GateReport, accept: Accept) -> Judgement:
    return decide(given, patch_sha256="p" * 64, accept=accept, certifiable=tuple(GateName)).judgement


def test_equal_rows_and_ir_are_certified(tmp_path: Path) -> None:
    found = analysis(row(), row("t[1]"))
    proof = proven(tmp_path, found, mate(), mate("t[1]"))
    assert proof.same
    assert judged(proof).verdict is Verdict.DEFERRED
    given = report(ORDER, found, proof)
    assert {(gate.ruling, gate.basis) for gate in given.gates} == {(Ruling.PASS, Basis.CERTIFIED)}
    assert given.gates[0].summary == "certified 2/2 rows: Tile IR and launches as the source's"
    assert (given.rows_expected, given.rows_collected) == (2, 2)
    assert decided(given, Accept.CERTIFIED) is Judgement.LAND
    assert decided(given, Accept.MEASURED) is Judgement.AWAIT_GPU


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (mate(launches=0), "is missing"),
        (mate(launches=2), "is too many"),
        (mate(steps=()), "which the candidate does not"),
        (mate(launches=1, steps=(READ, READ)), "which the reference does not"),
        (mate(launches=1).__class__(**{**vars(mate()), "launches": (replace(MADE, grid=(2, 1, 1)),)}), "the grid"),
    ],
)
def test_a_row_that_differs_is_the_host_codes_and_is_not_certified(
    tmp_path: Path, made: CandidateRow, where: str
) -> None:
    found = analysis(row())
    proof = proven(tmp_path, found, made)
    reply = judged(proof)
    assert (reply.verdict, reply.owner) == (Verdict.FAIL, Owner.HOST)
    assert where in reply.summary
    assert judgement(found, proof) is not Judgement.LAND


def test_other_tile_ir_is_the_kernels(tmp_path: Path) -> None:
    found = analysis(row())
    proof = proven(tmp_path, found, mate(), candidate=OTHER_IR)
    reply = judged(proof)
    assert (reply.verdict, reply.owner) == (Verdict.FAIL, Owner.KERNEL)
    assert judgement(found, proof) is not Judgement.LAND


WHY = {"sig": "no spelling of exp with a rounding mode"}


def declared_to_differ(
    tmp_path: Path, found: Analysis, *rows: CandidateRow, made: Path = OTHER_IR, compiled: Path = OTHER_IR
) -> Proof:
    """What is launched is `made`; kernel.rs was compiled to `compiled`; instances.json says that it differs."""
    reference, candidate = folders(tmp_path, made)
    write_ir(reference / "ir" / "generated" / "sig.mlir", compiled)
    return compare_all(found, rows, reference, candidate, "sm_90", Compiled(declared=WHY))


def test_tile_ir_that_differs_as_declared_waits_for_a_gpu_and_is_never_certified(tmp_path: Path) -> None:
    found = analysis(row(), row("t[1]"))
    proof = declared_to_differ(tmp_path, found, mate(), mate("t[1]"))
    assert not proof.same
    reply = judged(proof)
    assert reply.verdict is Verdict.DEFERRED
    assert "2 cannot be decided without a GPU" in reply.summary
    assert WHY["sig"] in reply.summary
    assert judgement(found, proof, Accept.CERTIFIED) is Judgement.AWAIT_GPU
    assert judgement(found, proof, Accept.MEASURED) is Judgement.AWAIT_GPU


def test_a_gate_hears_of_no_declaration_and_fails_nothing_for_other_tile_ir(tmp_path: Path) -> None:
    found = analysis(row())
    given = report(ORDER, found, proven(tmp_path, found, mate(), candidate=OTHER_IR))
    assert given.gates[0].summary.startswith("not certified: relu._relu_kernel: ")
    assert "\n" not in given.gates[0].summary
    assert {gate.ruling for gate in given.gates} == {Ruling.NOT_RUN}
    assert decided(given, Accept.CERTIFIED) is Judgement.AWAIT_GPU


def test_a_declaration_for_tile_ir_that_is_the_same_changes_nothing(tmp_path: Path) -> None:
    found = analysis(row())
    proof = declared_to_differ(tmp_path, found, mate(), made=IR, compiled=IR)
    assert proof.same
    assert judgement(found, proof) is Judgement.LAND


def test_what_is_launched_must_be_what_was_compiled_and_declared(tmp_path: Path) -> None:
    proof = declared_to_differ(tmp_path, analysis(row()), mate(), compiled=IR)
    reply = judged(proof)
    assert (reply.verdict, reply.owner) == (Verdict.FAIL, Owner.HOST)
    assert "was launched otherwise than instances.json has it compiled" in reply.summary


def test_a_kernel_that_compiles_to_the_references_and_is_launched_otherwise_is_the_hosts_fault(
    tmp_path: Path,
) -> None:
    reference, candidate = folders(tmp_path, OTHER_IR)
    found = analysis(row())
    left = Compiled(same=frozenset({"sig"}))
    reply = judged(compare_all(found, (mate(),), reference, candidate, "sm_90", left))
    assert (reply.verdict, reply.owner) == (Verdict.FAIL, Owner.HOST)
    assert "launched otherwise than it was compiled" in reply.summary


def other_promise(tmp_path: Path) -> Path:
    """The same program with another promise about its first array."""
    text = IR.read_text(encoding="utf-8")
    file = tmp_path / "promise.mlir"
    changed = text.replace("assume div_by<16>, %arg0", "assume div_by<8>, %arg0")
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    return file


def test_where_promises_alone_differ_as_declared_arguments_are_compared_all_the_same(tmp_path: Path) -> None:
    promise = other_promise(tmp_path)
    found = analysis(row())
    reply = judged(declared_to_differ(tmp_path / "a", found, mate(), made=promise, compiled=promise))
    assert reply.verdict is Verdict.DEFERRED
    other = replace(mate(), launches=(replace(MADE, params=(X, 999, 1, Y, 1000, 1)),))
    reply = judged(declared_to_differ(tmp_path / "b", found, other, made=promise, compiled=promise))
    assert (reply.verdict, reply.owner) == (Verdict.FAIL, Owner.HOST)
    assert "extent 0 of x is 1000, the candidate passes 999" in reply.summary


def test_a_configuration_of_a_tuner_that_no_row_launches_is_left_to_a_gpu(tmp_path: Path) -> None:
    tuned = replace(SIGNATURE, id="other", tuned=True)
    found = analysis(row(), signatures=(SIGNATURE, tuned))
    proof = proven(tmp_path, found, mate())
    reply = judged(proof)
    assert reply.verdict is Verdict.DEFERRED
    assert "the tuner's space" in reply.summary
    assert judgement(found, proof) is Judgement.AWAIT_GPU


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (mate(launches=0), "is missing"),
        (mate(launches=2), "is too many"),
        (mate(steps=()), "which the candidate does not"),
        (replace(mate(), launches=(replace(MADE, grid=(2, 1, 1)),)), "the grid"),
    ],
)
def test_a_declaration_does_not_excuse_other_launches_or_another_grid(
    tmp_path: Path, made: CandidateRow, where: str
) -> None:
    reply = judged(declared_to_differ(tmp_path, analysis(row()), made))
    assert (reply.verdict, reply.owner) == (Verdict.FAIL, Owner.HOST)
    assert where in reply.summary


def test_tile_ir_that_cannot_be_read_proves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.mlir"
    broken.write_text("entry @")
    proof = proven(tmp_path, analysis(row()), mate(), candidate=broken)
    assert not proof.same
    assert "line 1" in judged(proof).summary


@pytest.mark.parametrize(
    "rows",
    [
        (),
        (mate(status=RowStatus.SKIPPED, reason="needs two GPUs"),),
        (mate(status=RowStatus.FAILED, reason="TypeError: x"),),
        (mate(status=RowStatus.FAILED, reason=NO_LAUNCH, launches=0),),
    ],
)
def test_a_row_that_the_target_lacks_disproves_it(tmp_path: Path, rows: tuple[CandidateRow, ...]) -> None:
    found = analysis(row(), row("t[1]"))
    proof = proven(tmp_path, found, *rows, mate("t[1]"))
    assert len(proof.broken) == 1
    assert "t[0]" in proof.broken[0]
    given = report(ORDER, found, proof)
    assert given.gates[0].ruling is Ruling.FAIL
    assert given.rows_collected == 1
    assert decided(given, Accept.CERTIFIED) is Judgement.REJECT
    assert judged(proof).verdict is Verdict.FAIL


def test_skipped_rows_are_not_certified_and_are_counted_apart(tmp_path: Path) -> None:
    skipped = row("t[1]", status=RowStatus.SKIPPED, reason="too large", launches=0)
    found = analysis(row(), skipped)
    proof = proven(tmp_path, found, mate(), mate("t[1]", status=RowStatus.SKIPPED, reason="too large", launches=0))
    given = report(ORDER, found, proof)
    assert given.certificate is not None
    assert [item.key for item in given.certificate.rows] == ["t[0]"]
    assert (given.rows_expected, given.rows_collected) == (1, 1)
    assert "1/1 rows (1 more are skipped by their tests)" in given.gates[0].summary
    assert decided(given, Accept.CERTIFIED) is Judgement.LAND


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (row("t[1]", steps=(TOOK_A_WAY, READ)), mate("t[1]", steps=(TOOK_A_WAY, READ))),
        (row("t[1]", status=RowStatus.SKIPPED, reason="no", launches=0), mate("t[1]")),
    ],
    ids=["branch on a value", "row that the source skips"],
)
def test_a_row_that_a_trace_cannot_decide_waits_for_a_gpu_with_its_reason(
    tmp_path: Path, ours, theirs: CandidateRow
) -> None:
    found = analysis(row(), ours)
    proof = proven(tmp_path, found, mate(), theirs)
    assert not proof.same
    reply = judged(proof)
    assert reply.verdict is Verdict.DEFERRED
    assert "t[1]" in reply.summary
    given = report(ORDER, found, proof)
    assert {gate.ruling for gate in given.gates} == {Ruling.NOT_RUN}
    assert "t[1]" in given.gates[0].summary
    assert decided(given, Accept.CERTIFIED) is Judgement.AWAIT_GPU


def test_a_branch_of_the_candidate_alone_is_a_difference(tmp_path: Path) -> None:
    proof = proven(tmp_path, analysis(row()), mate(steps=(TOOK_A_WAY, READ)))
    assert judged(proof).verdict is Verdict.FAIL


@pytest.mark.parametrize("status", [RowStatus.TRACED, RowStatus.FAILED])
def test_a_row_without_launches_is_proven_by_launching_nothing(tmp_path: Path, status: RowStatus) -> None:
    found = analysis(row(), row("t[1]", launches=0))
    reason = NO_LAUNCH if status is RowStatus.FAILED else None
    proof = proven(tmp_path, found, mate(), mate("t[1]", launches=0, status=status, reason=reason))
    assert proof.same, (proof.rows, proof.broken)
    assert judgement(found, proof) is Judgement.LAND
    assert "1 launches" in report(ORDER, found, proof).gates[1].summary


@pytest.mark.parametrize(
    "theirs",
    [
        mate("t[1]"),
        mate("t[1]", launches=0, steps=(replace(READ, after=0),), status=RowStatus.FAILED, reason=NO_LAUNCH),
        mate("t[1]", launches=0, status=RowStatus.FAILED, reason="TypeError"),
    ],
    ids=["launches", "other steps", "fails"],
)
def test_a_row_without_launches_is_no_free_pass(tmp_path: Path, theirs: CandidateRow) -> None:
    found = analysis(row(), row("t[1]", launches=0))
    proof = proven(tmp_path, found, mate(), theirs)
    assert judged(proof).verdict is Verdict.FAIL
    assert judgement(found, proof) is not Judgement.LAND


def test_a_signature_that_the_candidate_never_launches_is_missing(tmp_path: Path) -> None:
    found = analysis(row())
    more = replace(found.signatures[0], id="more")
    proof = proven(tmp_path, replace(found, signatures=(*found.signatures, more)), mate())
    assert not proof.same
    assert "never launches it" in judged(proof).summary


def test_a_crate_that_does_not_build_is_the_kernels_or_the_hosts_by_its_first_error() -> None:
    def error(file: str) -> Finding:
        return Finding(file=file, line=3, column=1, construct=None, message="expected item", advice=None)

    def of(file: str) -> Proof:
        return Proof(
            build=Build(library=None, findings=(error(file),), seconds=1.0, environment=False, timed_out=False)
        )

    kernel, host = judged(of("a/relu_kernel/kernel.rs")), judged(of("a/relu_kernel/ffi.rs"))
    assert (kernel.owner, kernel.fault, host.owner) == (Owner.KERNEL, Fault.KERNEL, Owner.HOST)
    assert "kernel.rs:3:1: expected item" in kernel.summary
    given = report(ORDER, analysis(row()), of("a/relu_kernel/kernel.rs"))
    assert given.diagnosis is not None
    assert decided(given, Accept.CERTIFIED) is Judgement.REJECT


def test_a_recording_that_fails_is_the_environments_unless_the_candidate_keeps_tests_from_loading() -> None:
    dead = judged(Proof(failed=ends(1, "nothing was collected: ended by SIGSEGV")))
    assert (dead.owner, dead.fault) == (Owner.ENV, Fault.ENV)
    slow = judged(Proof(failed=ends(-9, "", timed_out=True)))
    assert (slow.owner, slow.fault) == (Owner.ENV, Fault.HANG)
    text = "not collected: tests/ops/test_relu.py: NameError: name 'go' is not defined\nnothing was collected: x"
    unloadable = judged(Proof(failed=ends(1, text)))
    assert (unloadable.owner, unloadable.fault) == (Owner.HOST, Fault.KERNEL)
    assert "NameError" in unloadable.summary

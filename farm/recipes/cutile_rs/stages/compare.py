"""Stage C: say whose the failure is, from the comparisons that D made. Changes no code."""

from typing import assert_never

from farm.analysis import Analysis, CandidateRow
from farm.fault import Fault, Owner
from farm.gates import SignatureProof
from farm.layout import Layout
from farm.op import Op
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding, Reply, Verdict
from farm.recipes import BoxIO
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.compiling import IR_REPORT, Compared
from farm.recipes.cutile_rs.stages.kernel import kernel_file
from farm.recipes.cutile_rs.stages.launched import Standing, compiled
from farm.recipes.cutile_rs.stages.proof import CANDIDATE, compare_all
from farm.recipes.cutile_rs.stages.tools import blocked, finding, load, save, workspace_tree

IR_DIAGNOSIS = "ir-diagnosis.json"
_ADVICE = "make kernel.rs do there what the source does: the first place where the two part is the cause"


def compare_ir(order: BoxOrder, io: BoxIO, layout: Layout, op: Op) -> Reply:
    """PASS when every launched module's Tile IR is the reference's, so that the kernel is not at fault.

    What is declared to differ is noted; what differs otherwise is the kernel's.
    """
    if not (io.out / CANDIDATE).exists():
        found = _compiled_differently(io)
        if found:
            save(io, IR_DIAGNOSIS, found)
            summary = f"Tile IR differs: {found[0].message}"
            return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, found, summary)
        message = "the candidate was never recorded, so there is no Tile IR to compare"
        found = (finding(message, "D has to build and record before C can say anything"),)
        save(io, IR_DIAGNOSIS, found)
        return blocked(Verdict.BLOCKED, Owner.KERNEL, Fault.KERNEL, found, message)
    analysis = load(io.out / ANALYSIS, Analysis)
    left = compiled(io, kernel_file(io, workspace_tree(io), layout, op))
    rows = load(io.out / CANDIDATE, tuple[CandidateRow, ...])
    proof = compare_all(analysis, rows, io.out, io.out / "candidate", order.gpu, left)
    by_standing: dict[Standing, list[Finding]] = {standing: [] for standing in Standing}
    for item in proof.signatures:
        if item.signature in proof.standings:
            standing = proof.standings[item.signature]
            by_standing[standing].append(_finding(item, _advice(standing, left.declared.get(item.signature, ""))))
    kernel, host, notes = (
        tuple(by_standing[standing]) for standing in (Standing.KERNEL, Standing.HOST, Standing.DECLARED)
    )
    save(io, IR_DIAGNOSIS, (*kernel, *host, *notes))
    if kernel:
        summary = f"Tile IR differs: {kernel[0].message}"
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, kernel, summary)
    if host:
        summary = f"launched otherwise than compiled: {host[0].message}"
        return blocked(Verdict.FAIL_FIXABLE, Owner.HOST, Fault.AGENT, host, summary)
    return Reply(
        verdict=Verdict.PASS_WITH_NOTES if notes else Verdict.PASS,
        owner=None,
        fault=None,
        fail_class=None,
        artifacts=(IR_DIAGNOSIS,),
        summary=f"the Tile IR of {len(proof.signatures)} signatures is the reference's"
        + (f" but for {len(notes)}, as declared" if notes else ""),
    )


def _compiled_differently(io: BoxIO) -> tuple[Finding, ...]:
    """What B's comparison showed, where nothing was recorded: then kernel.rs alone can be looked at."""
    try:
        report = load(io.out / IR_REPORT, tuple[Compared, ...])
    except (OSError, ValueError):
        return ()
    wrong = (item for item in report if not item.same and not item.declared)
    return tuple(
        finding(f"{item.kernel}, signature {item.signature}: {item.difference}", _ADVICE) for item in wrong
    )


def _advice(standing: Standing, why: str) -> str:
    match standing:
        case Standing.SAME:
            return "nothing"
        case Standing.DECLARED:
            return f"declared: {why}"
        case Standing.HOST:
            return "let ffi.rs choose the generics and arguments that instances.json has for this signature"
        case Standing.KERNEL:
            return _ADVICE
    assert_never(standing)


def _finding(item: SignatureProof, advice: str) -> Finding:
    return finding(f"{item.kernel}, signature {item.signature}: {item.difference}", advice)

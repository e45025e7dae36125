"""Stage C: say whose the failure is, from the comparisons that D made. Changes no code."""

from farm.analysis import Analysis, CandidateRow
from farm.fault import Fault, Owner
from farm.gates import SignatureProof
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding, Reply, Verdict
from farm.recipes import BoxIO
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.compiling import declared_differences
from farm.recipes.cutile_rs.stages.proof import CANDIDATE, compare_all
from farm.recipes.cutile_rs.stages.tools import blocked, finding, load, save

IR_DIAGNOSIS = "ir-diagnosis.json"
_ADVICE = "make kernel.rs do there what the source does: the first place where the two part is the cause"


def compare_ir(order: BoxOrder, io: BoxIO) -> Reply:
    """PASS when every launched module's Tile IR is the reference's, so that the kernel is not at fault.

    What is declared to differ is noted; what differs otherwise is the kernel's.
    """
    if not (io.out / CANDIDATE).exists():
        message = "the candidate was never recorded, so there is no Tile IR to compare"
        found = (finding(message, "D has to build and record before C can say anything"),)
        save(io, IR_DIAGNOSIS, found)
        return blocked(Verdict.BLOCKED, Owner.KERNEL, Fault.KERNEL, found, message)
    analysis = load(io.out / ANALYSIS, Analysis)
    declared = declared_differences(io)
    rows = load(io.out / CANDIDATE, tuple[CandidateRow, ...])
    proof = compare_all(analysis, rows, io.out, io.out / "candidate", order.gpu, declared)
    other = [item for item in proof.signatures if item.entry is not None and not item.same]
    wrong = tuple(_finding(item, _ADVICE) for item in other if item.signature not in proof.differs)
    notes = tuple(
        _finding(item, f"declared: {declared[item.signature]}")
        for item in other
        if item.signature in proof.differs
    )
    save(io, IR_DIAGNOSIS, (*wrong, *notes))
    if wrong:
        return blocked(
            Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, wrong, f"Tile IR differs: {wrong[0].message}"
        )
    return Reply(
        verdict=Verdict.PASS_WITH_NOTES if notes else Verdict.PASS,
        owner=None,
        fault=None,
        fail_class=None,
        artifacts=(IR_DIAGNOSIS,),
        summary=f"the Tile IR of {len(proof.signatures)} signatures is the reference's"
        + (f" but for {len(notes)}, as declared" if notes else ""),
    )


def _finding(item: SignatureProof, advice: str) -> Finding:
    return finding(f"{item.kernel}, signature {item.signature}: {item.difference}", advice)

"""Stage D: write the host code, build, run the rows on the stand-in driver, compare."""

from dataclasses import dataclass, replace

from farm.analysis import Analysis
from farm.elf import exported_functions
from farm.fault import Fault, Owner
from farm.gates import RowProof, SignatureProof
from farm.layout import Layout
from farm.op import Op
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding, Reply, Verdict
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.host import write_host
from farm.recipes.cutile_rs.instances import INSTANCES, Instances, instances_of
from farm.recipes.cutile_rs.inventory import own_digest
from farm.recipes.cutile_rs.plan import KernelPlan
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.kernel import PLAN, kernel_file
from farm.recipes.cutile_rs.stages.launched import Standing, compiled
from farm.recipes.cutile_rs.stages.proof import CANDIDATE, Proof, prove
from farm.recipes.cutile_rs.stages.rustfmt import lay_out
from farm.recipes.cutile_rs.stages.tools import blocked, finding, load, place, save, tool_failed, workspace_tree
from farm.recipes.cutile_rs.stages.tracing import uncollected
from farm.tree import sha256

PROOF = "proof.json"


@dataclass(frozen=True, kw_only=True)
class ProofReport:
    """proof.json: the correctness report of a candidate, as far as no GPU allows."""

    candidate: str  #: `own_digest` of the tree that was proven
    library_sha256: str  #: of the library that was built from it; empty: none was
    exports: tuple[str, ...]  #: functions that the library exports
    rows: tuple[RowProof, ...]
    signatures: tuple[SignatureProof, ...]
    undecided: tuple[str, ...]  #: rows about which only a GPU can say something
    verdict: Verdict  #: what it comes to
    summary: str  #: one sentence
    schema: int = 1


def write_and_prove(order: BoxOrder, io: BoxIO, layout: Layout, op: Op) -> Reply:
    """Stage D's program. Without a GPU the best it can say is DEFERRED.

    Without a plan that describes the kernels as they are, the host code that is there is proven.
    """
    analysis = load(io.out / ANALYSIS, Analysis)
    plan = _plan(io, analysis)
    if plan is not None:
        written = write_host(op, workspace_tree(io), layout, analysis, plan)
        if written.findings:
            summary = f"host code: {place(written.findings[0])}"
            return blocked(Verdict.BLOCKED, Owner.ENV, Fault.UNSUPPORTED, written.findings, summary)
        kernel = kernel_file(io, workspace_tree(io), layout, op)
        for name, data in written.files.items():
            path = io.workspace / name
            if path == kernel:  # B's, who may have changed it since the plan was made
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        lay_out(io, [name for name in written.files if name.endswith("/ffi.rs")])
    return prove_host(order, io, layout, op, analysis)


def _plan(io: BoxIO, analysis: Analysis) -> KernelPlan | None:
    """The translator's plan, unless instances.json shows that somebody gave kernel.rs other entries since."""
    try:
        plan = load(io.out / PLAN, KernelPlan)
        planned = instances_of(plan.entries, analysis).instances
        now = load(io.out / INSTANCES, Instances).instances
    except (OSError, ValueError):
        return None
    said = {item.signature: replace(item, differs="") for item in now}
    return plan if said == {item.signature: item for item in planned} else None


def prove_host(order: BoxOrder, io: BoxIO, layout: Layout, op: Op, analysis: Analysis) -> Reply:
    """Build and prove the host code that is in the workspace, whoever wrote it; leaves proof.json."""
    kernel = kernel_file(io, workspace_tree(io), layout, op)
    proof = prove(order, io, layout, analysis, io.out, "host", compiled(io, kernel))
    reply = judged(proof)
    report = ProofReport(
        candidate=own_digest(workspace_tree(io), layout, op),
        library_sha256="" if proof.library is None else sha256(proof.library),
        exports=() if proof.library is None else exported_functions(proof.library),
        rows=proof.rows,
        signatures=proof.signatures,
        undecided=proof.undecided,
        verdict=reply.verdict,
        summary=reply.summary,
    )
    save(io, PROOF, report)
    return reply


def judged(proof: Proof) -> Reply:
    """The reply that a proof amounts to."""
    if proof.build is not None:
        build = proof.build
        owner = Owner.ENV if build.environment or build.timed_out else _owner(build.findings)
        fault = Fault.ENV if owner is Owner.ENV else Fault.KERNEL
        verdict = Verdict.BLOCKED if owner is Owner.ENV else Verdict.FAIL
        return blocked(
            verdict, owner, fault, build.findings, f"the crate does not build: {place(build.findings[0])}"
        )
    if proof.failed is not None:
        return _not_recorded(proof.failed)
    wrong = [s for s in proof.signatures if proof.standings.get(s.signature) in (Standing.KERNEL, Standing.HOST)]
    if wrong:
        found = tuple(finding(f"{s.kernel}, signature {s.signature}: {s.difference}") for s in wrong[:20])
        if any(proof.standings[s.signature] is Standing.KERNEL for s in wrong):
            return blocked(Verdict.FAIL, Owner.KERNEL, Fault.KERNEL, found, f"Tile IR differs: {found[0].message}")
        summary = f"host code: a kernel is launched otherwise than it was compiled: {found[0].message}"
        return blocked(Verdict.FAIL, Owner.HOST, Fault.KERNEL, found, summary)
    messages = [
        *(f"row {row.key}: {row.difference}" for row in proof.rows if not row.same),
        *proof.broken,
        *(f"signature {s.signature}: {s.difference}" for s in proof.signatures if not s.same and s.entry is None),
    ]
    wrong_ones = [message for message in messages if message not in proof.undecided]
    if wrong_ones or not proof.rows:
        found = tuple(finding(message) for message in wrong_ones[:20] or ["no row was compared"])
        return blocked(Verdict.FAIL, Owner.HOST, Fault.KERNEL, found, f"host code: {found[0].message}")
    return Reply(
        verdict=Verdict.DEFERRED,
        owner=None,
        fault=None,
        fail_class=None,
        artifacts=(CANDIDATE, PROOF),
        summary=_counted(proof),
    )


def _not_recorded(ended: ProcessResult) -> Reply:
    """The reply for a recording without rows: the host code's fault where it keeps the tests from loading."""
    missing = uncollected(ended.output)
    if not missing:
        return tool_failed("recording the candidate", ended)
    found = tuple(finding(message, "the source's rows load: see what the wrapper imports") for message in missing)
    summary = f"with the candidate, test files cannot be collected: {missing[0]}"
    return blocked(Verdict.FAIL, Owner.HOST, Fault.KERNEL, found, summary)


def _counted(proof: Proof) -> str:
    """What was compared, and what only a GPU can say."""
    launches = sum(row.launches for row in proof.rows)
    counts = f"{len(proof.rows)} rows, {launches} launches, {len(proof.signatures)} signatures"
    if proof.undecided:
        return f"{counts}; {len(proof.undecided)} cannot be decided without a GPU: {proof.undecided[0]}"
    return f"{counts} as the reference's"


def _owner(findings: tuple[Finding, ...]) -> Owner:
    """Whose file the compiler's first error is in."""
    kernel = any(f.file is not None and f.file.endswith("/kernel.rs") for f in findings[:1])
    return Owner.KERNEL if kernel else Owner.HOST

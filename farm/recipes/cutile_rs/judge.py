"""The gate box's program: trace, build and record again, from the bare base plus the patch alone."""

from farm.analysis import Analysis, RowStatus
from farm.capture import read_tree
from farm.fault import Fault, Owner
from farm.gates import Basis, Certificate, GateName, GateReport, GateResult, Ruling
from farm.layout import Layout, find_package
from farm.op import Op
from farm.orders import BoxOrder, BuildReport, Diagnosis
from farm.pipeline.stage import Reply
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.inventory import inventory
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS, analyse
from farm.recipes.cutile_rs.stages.host import judged
from farm.recipes.cutile_rs.stages.kc import check_host_file, check_rule
from farm.recipes.cutile_rs.stages.proof import Proof, build_library, keep_library, prove
from farm.recipes.cutile_rs.stages.tools import load, place, scratch_copy, tool_failed

#: What a certificate cannot say for each gate.
NOT_MEASURED = "not measured: there is no GPU here"


def judge(order: BoxOrder, io: BoxIO, layout: Layout) -> GateReport:
    """The gates of one patch, certified as far as no GPU allows; measured ones are NOT_RUN."""
    tree = read_tree(io.workspace)
    op = next((op for op in inventory(tree, layout) if op.name == order.op), None)
    if op is None:
        return _undone(Fault.INFRA, f"the patched tree has no op {order.op!r}", "report this as a defect")
    if op.problems:
        first = op.problems[0]
        return _undone(Fault.AGENT, f"{first.file}:{first.line}:{first.column}: {first.message}", first.advice)
    rule = _rule(order, io, layout, op)
    if rule is not None:
        return rule
    reply = analyse(order, io, op)
    if reply.owner is not None:
        return _from_reply(reply)
    analysis = load(io.out / ANALYSIS, Analysis)
    proof = prove(order, io, layout, analysis, io.out, "gate")
    return report(order, analysis, proof)


def build_alone(io: BoxIO, layout: Layout) -> BuildReport:
    """Build the crate of the tree in the workspace and keep its library."""
    build = build_library(io, layout, scratch_copy(io, "build"))
    if build.library is not None:
        keep_library(io, build.library)
        return BuildReport(diagnosis=None, seconds=build.seconds)
    fault = Fault.ENV if build.environment or build.timed_out else Fault.KERNEL
    first = build.findings[0]
    diagnosis = Diagnosis(
        stage=None,
        fault=fault,
        summary=f"the crate does not build: {place(first)}",
        next_step=first.advice or "read the build's log",
    )
    return BuildReport(diagnosis=diagnosis, seconds=build.seconds)


def report(order: BoxOrder, analysis: Analysis, proof: Proof) -> GateReport:
    """What a proof says about each gate."""
    if proof.build is not None or proof.failed is not None:
        return _from_reply(judged(proof))
    certificate = Certificate(
        op=order.op,
        gpu=order.gpu,
        rows=proof.rows,
        signatures=proof.signatures,
        versions=analysis.versions,
        patch_sha256=order.patch_sha256 or "",
    )
    expected = sum(row.status is RowStatus.TRACED for row in analysis.rows)
    launches = sum(row.launches for row in proof.rows)
    good_rows = sum(row.same for row in proof.rows)
    skipped = f" ({proof.skipped} more are skipped by their tests)" if proof.skipped else ""
    good_ir = sum(item.same for item in proof.signatures)
    complete = certificate.complete and proof.same and proof.collected == expected
    texts = {
        GateName.CORRECTNESS: f"{good_rows}/{expected} rows{skipped}: Tile IR and launches as the source's",
        GateName.EXECUTED: f"{launches} launches of the library recorded on {good_rows}/{expected} rows",
        GateName.GEOMEAN: f"Tile IR identical {good_ir}/{len(proof.signatures)}",
    }
    return GateReport(
        gates=tuple(_gate(gate, texts[gate], complete, proof) for gate in GateName),
        certificate=certificate,
        rows_collected=proof.collected,
        rows_expected=expected,
        diagnosis=None,
    )


def _gate(gate: GateName, text: str, complete: bool, proof: Proof) -> GateResult:
    if complete:
        return GateResult(gate=gate, ruling=Ruling.PASS, basis=Basis.CERTIFIED, summary=f"certified {text}")
    if gate is GateName.CORRECTNESS and proof.broken:
        return GateResult(gate=gate, ruling=Ruling.FAIL, basis=None, summary=f"{proof.broken[0]}; {text}")
    why = _uncertified(proof)
    summary = NOT_MEASURED if why is None else f"not certified: {why}; {NOT_MEASURED}"
    return GateResult(gate=gate, ruling=Ruling.NOT_RUN, basis=None, summary=summary)


def _uncertified(proof: Proof) -> str | None:
    """Why there is no certificate, in one line: what cannot be decided, or the first signature that differs."""
    if proof.undecided:
        return proof.undecided[0]
    found = next((item for item in proof.signatures if not item.same and item.difference), None)
    return None if found is None else f"{found.kernel}: {str(found.difference).splitlines()[0]}"


def _rule(order: BoxOrder, io: BoxIO, layout: Layout, op: Op) -> GateReport | None:
    package = find_package(read_tree(io.workspace), layout)
    folder = io.workspace / package.target_folder / f"{op.name}_kernel"
    for name, check in (("kernel.rs", check_rule), ("ffi.rs", check_host_file)):
        if not (folder / name).is_file():
            return _undone(Fault.AGENT, f"there is no {op.name}_kernel/{name}", "the patch must hold it")
        found = check(io, folder / name)
        if isinstance(found, ProcessResult):
            return _from_reply(tool_failed("tilefarm-kc check", found))
        if found:
            return _undone(Fault.KERNEL, f"coding rule: {place(found[0])}", found[0].advice or "follow the rule")
    return None


def _from_reply(reply: Reply) -> GateReport:
    advice = next((f.advice for f in reply.findings if f.advice), None)
    fault = reply.fault or (Fault.ENV if reply.owner is Owner.ENV else Fault.KERNEL)
    return _undone(fault, reply.summary, advice or "read the gate's log")


def _undone(fault: Fault, summary: str, next_step: str) -> GateReport:
    not_run = tuple(
        GateResult(gate=gate, ruling=Ruling.NOT_RUN, basis=None, summary="not run") for gate in GateName
    )
    return GateReport(
        gates=not_run,
        certificate=None,
        rows_collected=0,
        rows_expected=0,
        diagnosis=Diagnosis(stage=None, fault=fault, summary=summary, next_step=next_step),
    )

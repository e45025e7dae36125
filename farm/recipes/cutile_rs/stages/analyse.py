"""Stage A: run the op's own rows without a GPU; analysis.json and the reference Tile IR."""

import re

from farm.analysis import Analysis, RowStatus
from farm.fault import Fault, Owner
from farm.op import Op
from farm.orders import BoxOrder
from farm.pipeline.stage import Reply, Verdict
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.stages.tools import blocked, finding, save, tool_failed
from farm.recipes.cutile_rs.stages.tracing import trace_reference, uncollected

ANALYSIS = "analysis.json"


def analyse(order: BoxOrder, io: BoxIO, op: Op) -> Reply:
    """Trace the op. An op without rows is void; a row that cannot be traced blocks."""
    tests = tuple(dict.fromkeys(site.file for site in op.tests))
    if not tests:
        return _void(f"no test of the repository exercises {op.name} by a `backend` parameter")
    traced = trace_reference(order, io, io.workspace, tests, io.out)
    missing = uncollected(traced.output) if isinstance(traced, ProcessResult) else traced.uncollected
    if missing:
        return _not_collected(missing)
    if isinstance(traced, ProcessResult):
        return tool_failed("the trace program", traced)
    analysis = Analysis(
        op=op.name,
        source=order.source,
        target=order.target,
        gpu=order.gpu,
        tests=tests,
        source_files=op.source_files,
        rows=traced.rows,
        kernels=traced.kernels,
        signatures=traced.signatures,
        void=not traced.rows,
        versions=traced.versions,
    )
    save(io, ANALYSIS, analysis)
    if analysis.void:
        return _void(f"{', '.join(tests)} has no row of backend {order.source}")
    failed = [row for row in analysis.rows if row.status is RowStatus.FAILED]
    counts = f"{len(analysis.rows)} rows collected, {analysis.traced} traced"
    io.log(counts)
    if failed:
        found = tuple(finding(f"row {row.key}: {row.reason}") for row in failed[:20])
        return blocked(
            Verdict.BLOCKED, Owner.ENV, Fault.UNSUPPORTED, found, f"{counts}; {len(failed)} could not be traced"
        )
    if not analysis.traced:
        return _void(f"every row of {', '.join(tests)} is skipped")
    launches = sum(len(row.launches) for row in analysis.rows)
    if not launches:
        return _void(f"no row of {', '.join(tests)} launches a kernel of {order.source}")
    return Reply(
        verdict=Verdict.PASS,
        owner=None,
        fault=None,
        fail_class=None,
        artifacts=(ANALYSIS, *(s.ir for s in analysis.signatures)),
        summary=f"{counts}; {launches} launches, {len(analysis.signatures)} signatures",
    )


def _not_collected(missing: tuple[str, ...]) -> Reply:
    """The reply for test files that cannot be imported: rows that nobody saw may not be left out."""
    found = tuple(finding(message, _advice(message)) for message in missing)
    summary = f"test files cannot be collected: {missing[0]}"
    return blocked(Verdict.BLOCKED, Owner.ENV, Fault.UNSUPPORTED, found, summary)


def _advice(message: str) -> str:
    module = re.search(r"No module named '([^']+)'", message)
    if module is None:
        return "make the file importable without a GPU, or take the op out of the run"
    name = module.group(1).split(".")[0]
    return f"the toolchain has no Python package {name}: add it to the toolchain's requirements, install, retry"


def _void(reason: str) -> Reply:
    advice = "write rows that are parametrised by `backend`; without one nothing can be proven"
    return blocked(Verdict.BLOCKED, Owner.ENV, Fault.UNSUPPORTED, (finding(reason, advice),), f"void: {reason}")

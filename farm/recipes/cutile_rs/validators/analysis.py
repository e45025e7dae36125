"""analysis.json: complete, and in itself consistent."""

from collections.abc import Iterator

from farm.analysis import Analysis, RowStatus
from farm.fault import Owner
from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.tools import finding, load
from farm.recipes.cutile_rs.validators.case import Case, bad, good, wrong

_AGAIN = "trace the op anew: `python -m containers.box.trace`; the file is written by it, never by hand"


def read_analysis(case: Case) -> Analysis | Validated:
    """The analysis, or why there is none."""
    try:
        return load(case.io.out / ANALYSIS, Analysis)
    except OSError as error:
        return wrong(Owner.ENV, f"{ANALYSIS}: {error.strerror or error}", _AGAIN, ANALYSIS)
    except ValueError as error:
        return wrong(Owner.ENV, f"{ANALYSIS}: {error}", _AGAIN, ANALYSIS)


def analysis(case: Case) -> Validated:
    """Rows, launches, signatures and kernels refer to each other, and to the op that is converted."""
    found = read_analysis(case)
    if isinstance(found, Validated):
        return found
    problems = tuple(finding(message, _AGAIN, ANALYSIS) for message in _problems(case, found))
    if problems:
        return bad(Owner.ENV, f"{ANALYSIS}: {problems[0].message}", *problems[:20])
    launches = sum(len(row.launches) for row in found.rows)
    return good(
        f"{found.traced} of {len(found.rows)} rows, {launches} launches, {len(found.signatures)} signatures"
    )


def _problems(case: Case, found: Analysis) -> Iterator[str]:
    order = case.order
    said = (found.op, found.source, found.target, found.gpu)
    if said != (order.op, order.source, order.target, order.gpu):
        yield f"it is of {' '.join(said)}, the order of {order.op} {order.source} {order.target} {order.gpu}"
    tests = tuple(dict.fromkeys(site.file for site in case.op.tests))
    if found.tests != tests:
        yield f"it names the tests {', '.join(found.tests)}; the op has {', '.join(tests)}"
    if found.source_files != case.op.source_files:
        yield f"it names the sources {', '.join(found.source_files)}; the op has {', '.join(case.op.source_files)}"
    if found.void or not found.traced:
        yield "no row was traced: nothing could be proven"
    kernels = {kernel.name: kernel for kernel in found.kernels}
    signatures = {signature.id: signature for signature in found.signatures}
    if len(signatures) != len(found.signatures):
        yield "two signatures have one id"
    keys = [row.key for row in found.rows]
    if len(set(keys)) != len(keys):
        yield "two rows have one key"
    launched = set()
    for row in found.rows:
        if row.status is RowStatus.FAILED:
            yield f"row {row.key} failed: {row.reason}"
        for launch in row.launches:
            launched.add(launch.signature)
            signature = signatures.get(launch.signature)
            if signature is None or signature.kernel != launch.kernel:
                yield f"row {row.key} launches {launch.kernel} by signature {launch.signature}: there is none"
            elif [arg.name for arg in signature.args] != [arg.name for arg in launch.args]:
                yield f"row {row.key} passes {launch.kernel} other arguments than signature {launch.signature} has"
    for signature in found.signatures:
        kernel = kernels.get(signature.kernel)
        if kernel is None:
            yield f"signature {signature.id} is of {signature.kernel}, which is not among the kernels"
        elif tuple(arg.name for arg in signature.args) != kernel.parameters:
            yield f"signature {signature.id} has other parameters than {kernel.file}:{kernel.line}"
        if not signature.tuned and signature.id not in launched:
            yield f"signature {signature.id} of {signature.kernel} is launched by no row"

"""performance.json and its records: figures that follow from raw records, or deferred with a reason."""

from farm.fault import Owner
from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.performance import REPORT, Performance, problem
from farm.recipes.cutile_rs.stages.tools import load
from farm.recipes.cutile_rs.validators.case import Case, good, wrong

_ADVICE = (
    "leave the raw records of both sides below perf/ and take the figures from `farm.measured`; never type them"
)


def performance(case: Case) -> Validated:
    """See the module."""
    found = problem(case.order, case.io.out)
    if found is not None:
        return wrong(Owner.ENV, found, _ADVICE, REPORT)
    report = load(case.io.out / REPORT, Performance)
    if report.deferred is not None:
        return good(f"deferred: {report.deferred}")
    return good(f"speedup {report.ratio:.4f} over {report.configs} configs, as the raw records give it")

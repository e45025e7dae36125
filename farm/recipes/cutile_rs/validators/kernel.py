"""kernel.rs: what its entries may be, and what it compiles to."""

from pathlib import Path

from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.compiling import judge_compiles, judge_entries, judge_kernel
from farm.recipes.cutile_rs.stages.kernel import kernel_file
from farm.recipes.cutile_rs.stages.tools import workspace_tree
from farm.recipes.cutile_rs.validators.analysis import read_analysis
from farm.recipes.cutile_rs.validators.case import Case, of_reply


def entry(case: Case) -> Validated:
    """The file is there, has an entry, and no parameter or construct that is banned; read from its syntax tree."""
    return of_reply(judge_entries(case.io, _file(case)))


def compiles(case: Case) -> Validated:
    """Every signature compiles. Where the Tile IR is not the reference's, it says so and is good all the same."""
    analysis = read_analysis(case)
    if isinstance(analysis, Validated):
        return analysis
    return of_reply(judge_compiles(case.order, case.io, analysis, _file(case)))


def kernel(case: Case) -> Validated:
    """Every signature compiles to the Tile IR of the reference, but for those that are declared to differ."""
    analysis = read_analysis(case)
    if isinstance(analysis, Validated):
        return analysis
    return of_reply(judge_kernel(case.order, case.io, analysis, _file(case)))


def _file(case: Case) -> Path:
    return kernel_file(case.io, workspace_tree(case.io), case.layout, case.op)

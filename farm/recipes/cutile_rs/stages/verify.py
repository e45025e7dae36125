"""Stage E: measure. Without a GPU there is nothing to measure on, and the stage says so."""

from farm.orders import BoxOrder
from farm.pipeline.stage import Reply, Verdict
from farm.recipes import BoxIO
from farm.recipes.cutile_rs.stages.performance import defer

NO_GPU = "not measured: there is no GPU here"


def verify(order: BoxOrder, io: BoxIO) -> Reply:
    """DEFERRED: boxes of this executor have no GPU; a GPU worker measures."""
    io.log("no GPU in this box")
    return Reply(
        verdict=Verdict.DEFERRED,
        owner=None,
        fault=None,
        fail_class=None,
        artifacts=defer(order, io, NO_GPU),
        summary=NO_GPU,
    )

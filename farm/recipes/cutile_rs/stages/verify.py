"""Stage E: measure. Without a GPU there is nothing to measure on, and the stage says so."""

from farm.orders import BoxOrder
from farm.pipeline.stage import Reply, Verdict
from farm.recipes import BoxIO


def verify(order: BoxOrder, io: BoxIO) -> Reply:
    """DEFERRED: boxes of this executor have no GPU; a GPU worker measures."""
    io.log("no GPU in this box")
    return Reply(
        verdict=Verdict.DEFERRED,
        owner=None,
        fault=None,
        fail_class=None,
        summary="not measured: there is no GPU here",
    )

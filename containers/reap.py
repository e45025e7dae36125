"""Remove boxes that nobody waits for.

A box is an orphan when the ledger names no job that wants it. It is removed only when two sweeps in a row
found it so: between a box's start and the ledger's word on it lies a moment.
"""

from collections.abc import Set
from typing import NamedTuple

from containers.engine import Engine

#: What a box may use to end by itself.
GRACE_S = 5.0


class Sweep(NamedTuple):
    """What one sweep did."""

    removed: tuple[str, ...]  #: names of boxes that are gone now
    suspects: frozenset[str]  #: orphans seen for the first time; hand them to the next sweep


def sweep(engine: Engine, *, farm: str, wanted: Set[str], suspects: Set[str]) -> Sweep:
    """Remove this farm's boxes that two sweeps in a row found unwanted. Raises EngineUnavailable."""
    orphans = {box.name for box in engine.list({"farm": farm})} - wanted
    removed = sorted(orphans & suspects)
    for name in removed:
        engine.remove(name, grace_s=GRACE_S)
    return Sweep(removed=tuple(removed), suspects=frozenset(orphans - suspects))

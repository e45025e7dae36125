"""The order of calls: blocks of A B B A, where a pair of calls gets the same inputs. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

#: Sent by a child before it imports anything of a tree.
FIRST_TOKEN = 1


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One call of a block."""

    slot: int  #: 0..3
    repeat: int
    first: bool  #: by side A
    seed: int  #: of the inputs; the two calls of a pair have the same, all other calls of a run another
    last: bool  #: of its slot


def block_turns(block: int, calls: int) -> Iterator[Turn]:
    """The calls of block number `block`, `calls` in each slot."""
    for slot, first in enumerate((True, False, False, True)):
        for repeat in range(calls):
            half = slot // 2
            yield Turn(
                slot=slot,
                repeat=repeat,
                first=first,
                seed=1 + (block * 2 + half) * calls + repeat,
                last=repeat == calls - 1,
            )

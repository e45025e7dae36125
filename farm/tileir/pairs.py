"""What the matcher passes around: pairs that must mean the same, and why they do not."""

from typing import NamedTuple

from farm.tileir.difference import DifferenceKind
from farm.tileir.graph import Node, Role


class Pair(NamedTuple):
    """A node of the reference and one of the candidate that must mean the same."""

    reference: Node
    candidate: Node
    role: Role | None  #: what they are to the pair that asked; None for effects
    parent: "Pair | None"  #: the pair that asked


class Mismatch(NamedTuple):
    """Why a pair does not mean the same."""

    kind: DifferenceKind
    pair: Pair | None  #: None: about the whole entry
    sentence: str
    reference: Node | None  #: where to point; None: nothing there
    candidate: Node | None


def mismatch(kind: DifferenceKind, pair: Pair, sentence: str) -> Mismatch:
    """A mismatch that points at both nodes of a pair."""
    return Mismatch(kind, pair, sentence, pair.reference, pair.candidate)

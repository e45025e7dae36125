"""Effects of two regions, side by side."""

from farm.tileir.difference import DifferenceKind
from farm.tileir.graph import Node
from farm.tileir.ops import LOADS
from farm.tileir.pairs import Mismatch, Pair


def in_order(left: list[Node], right: list[Node], colours: tuple[list[int], ...]) -> list[Node]:
    """The candidate's effects (right) with neighbouring weak loads in the order of the reference's."""
    found: list[Node] = []
    while len(found) < len(right):
        start = len(found)
        run = right[start : start + max(1, _run_of_loads(right, start))]
        for node in left[start : start + len(run)]:
            colour = colours[0][node.id]
            at = next((i for i, other in enumerate(run) if colours[1][other.id] == colour), 0)
            found.append(run.pop(at))
        found += run
    return found


def lengths_differ(left: list[Node], right: list[Node], parent: Pair | None) -> Mismatch:
    """The mismatch of two regions of which one has more effects."""
    more, fewer = max(len(left), len(right)), min(len(left), len(right))
    extra = (left if len(left) > len(right) else right)[fewer]
    places = (extra, None) if len(left) > len(right) else (None, extra)
    side = "reference" if len(left) > len(right) else "candidate"
    sentence = f"Only the {side} has this `{extra.op}`; it has {more} effects here, the other side {fewer}."
    return Mismatch(DifferenceKind.EFFECT, parent, sentence, *places)


def _is_weak_load(node: Node) -> bool:
    return node.op in LOADS and "weak" in node.attrs


def _run_of_loads(nodes: list[Node], start: int) -> int:
    length = 0
    while start + length < len(nodes) and _is_weak_load(nodes[start + length]):
        length += 1
    return length

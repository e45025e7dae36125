"""What the source's compiler derives about the divisors of integers, to promise it about addresses and values."""

import math
from collections.abc import Callable, Iterator, Sequence

from farm.recipes.cutile_rs.kernel import dtypes
from farm.recipes.cutile_rs.kernel.dtypes import Category
from farm.recipes.cutile_rs.kernel.model import Array, Block, Dim, Node

#: Larger powers of two are not promised.
MOST = 1024
#: An element's address is promised no larger alignment, bytes.
MOST_BYTES = 16
#: Operations that hand on their operand's values.
PASSING = ("broadcast", "reshape", "permute", "splat", "widen")

Measured = Callable[[Node, int], int]


def power(divisor: int) -> int:
    """The largest power of two that divides every multiple of `divisor`; 0 for 0."""
    return divisor & -divisor


def single(dims: tuple[Dim, ...], array: Array) -> tuple[int, ...]:
    """The lanes in which a tile of these extents has one element."""
    lanes = range(len(array.dtype.lanes))
    return tuple(lane for lane in lanes if all(dim.lanes[lane] == 1 for dim in dims))


class Divisors:
    """Divisors of the integers of a kernel: 0 for what is always 0, 1 where nothing is known."""

    def __init__(self, root: Block, measured: Measured) -> None:
        self._measured = measured  #: what is promised of an extent or stride in a lane
        self._sources = dict(_sources(root))
        self._known: dict[tuple[Node, int], int] = {}
        self._open: set[tuple[Node, int]] = set()
        self._circles = 0  #: how often a value was met inside its own derivation

    def steps(self, index: Sequence[Node], lane: int) -> tuple[int, ...]:
        """For the index on each axis a power of two that divides it, at most 16; 0: it is 0."""
        return tuple(min(MOST_BYTES, power(self.of(node, lane))) for node in index)

    def of(self, node: Node, lane: int) -> int:
        """A divisor of all elements of a value in a lane."""
        key = (node, lane)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            self._circles += 1
            return 0  # around a loop: what the other values that arrive here allow
        self._open.add(key)
        before = self._circles
        found = self._derived(node, lane)
        self._open.discard(key)
        if self._circles == before or not self._open:
            self._known[key] = found
        return found

    def _derived(self, node: Node, lane: int) -> int:
        if node in self._sources:
            return math.gcd(*(self.of(source, lane) for source in self._sources[node]))
        if node.op in ("extent", "stride"):
            return self._measured(node, lane)
        if node.op in PASSING:
            return self.of(node.operands[0], lane)
        if node.type is None or dtypes.category(node.type.dtype.lanes[lane]) is not Category.INTEGER:
            return 1
        match node.op, node.attrs.get("fn"):
            case "constant", _:
                return abs(int(node.attrs["value"].lanes[lane]))
            case "binary", "add" | "sub":
                return math.gcd(*(self.of(operand, lane) for operand in node.operands))
            case "binary", "mul":
                return math.prod(self.of(operand, lane) for operand in node.operands)
            case "unary", "neg" | "abs":
                return self.of(node.operands[0], lane)
            case "convert", _:
                return self._converted(node, lane)
            case _:
                return 1

    def _converted(self, node: Node, lane: int) -> int:
        inner = node.operands[0]
        assert inner.type is not None
        assert node.type is not None
        if dtypes.category(inner.type.dtype.lanes[lane]) is not Category.INTEGER:
            return 1
        return math.gcd(self.of(inner, lane), 1 << int(node.type.dtype.lanes[lane][1:]))


def _sources(block: Block) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Of every carried value and every result of a region: the values that it may be."""
    for node in block.nodes:
        first = 3 if node.op == "for" else 1
        ends = [inner.results for inner in (node.body, node.other) if inner is not None]
        for position, result in enumerate(node.attrs.get("results", [])):
            start = (node.operands[first + position],) if node.op == "for" else ()
            yield result, (*start, *(results[position] for results in ends))
            if node.op == "for" and node.body is not None:
                yield node.body.arguments[position], (*start, *(results[position] for results in ends))
        for inner in (node.body, node.other):
            if inner is not None:
                yield from _sources(inner)

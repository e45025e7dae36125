"""Which node a name stands for."""

from farm.errors import TileIRError
from farm.tileir.graph import Node
from farm.tileir.model import Op, Use, Value
from farm.tileir.span import Span


def unreadable(span: Span, message: str) -> TileIRError:
    """The error for a text that parses but makes no sense at a place."""
    return TileIRError(message, span.line, span.column)


class Scope:
    """Names that are visible, innermost last."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[Node, ...]] = {}

    def use(self, use: Use) -> Node:
        """The node that a mention means; raises TileIRError for an unknown name."""
        nodes = self._names.get(use.name)
        if nodes is None:
            raise unreadable(use.span, f"%{use.name} is not defined here")
        index = use.index or 0
        if index >= len(nodes):
            raise unreadable(use.span, f"%{use.name} has {len(nodes)} results")
        return nodes[index]

    def define(self, value: Value, nodes: tuple[Node, ...]) -> None:
        """Let a name stand for nodes."""
        self._names[value.name] = nodes

    def define_all(self, op: Op, nodes: tuple[Node, ...]) -> None:
        """Let an operation's result names stand for its result nodes, in order."""
        at = 0
        for value in op.results:
            self.define(value, nodes[at : at + value.count])
            at += value.count
        if op.results and at != len(nodes):
            raise unreadable(op.span, f"`{op.name}` gives {len(nodes)} results, {at} are named")

    def enter(self) -> dict[str, tuple[Node, ...]]:
        """What to give to `leave` when an inner body ends."""
        return self._names.copy()

    def leave(self, outer: dict[str, tuple[Node, ...]]) -> None:
        """Forget the names of an inner body."""
        self._names = outer

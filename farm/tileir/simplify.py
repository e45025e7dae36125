"""Makes nodes in a normal form: each rewrite is one of the rules and is noted when it is used."""

import math
from collections.abc import Callable
from enum import IntEnum

from farm.tileir import arithmetic
from farm.tileir.constants import Number
from farm.tileir.graph import Graph, Node, Origin, Region, Role
from farm.tileir.ops import ELEMENTWISE, PARTIAL
from farm.tileir.rules import RuleId
from farm.tileir.types import Type

Rewrite = Callable[["Simplifier", str, tuple[str, ...], tuple[Node, ...], Type, Origin], Node | None]


class Level(IntEnum):
    """How far two sides are brought together before they are compared."""

    FLOW = 0  #: data flow as written
    MEANING = 1  #: rules that hold for all values
    INDEX = 2  #: rules that hold for index computations


class Simplifier:
    """Builds the nodes of one side."""

    def __init__(self, graph: Graph, level: Level) -> None:
        self.graph = graph
        self.level = level
        self.rules: set[RuleId] = set()
        self.nonnegative: set[int] = set()  #: ids of nodes known not to be negative
        self.region = graph.top

    def make(
        self,
        op: str,
        attrs: tuple[str, ...],
        operands: tuple[Node, ...],
        type_: Type,
        origin: Origin,
        roles: tuple[Role, ...] | None = None,
    ) -> Node:
        """The node of an operation without effects."""
        if self.level >= Level.MEANING:
            found = self._rewritten(op, attrs, operands, type_, origin)
            if found is not None:
                return found
        home = self._pinned(op, attrs, operands, type_) if op in PARTIAL else None
        return self.graph.pure(op, attrs, operands, type_, origin, roles, home)

    def constant(self, number: Number, type_: Type, origin: Origin) -> Node:
        """A tile that holds this number everywhere."""
        scalar = self.graph.pure("constant", number, (), type_.with_shape(()), origin)
        return self.splat(scalar, type_, origin)

    def splat(self, scalar: Node, type_: Type, origin: Origin) -> Node:
        """A tile that holds this scalar everywhere."""
        if type_.shape == ():
            return scalar
        if scalar.op == "reshape" and scalar.operands[0].type == type_:
            return scalar.operands[0]
        return self.graph.pure("splat", (), (scalar,), type_, origin)

    def scalar(self, node: Node, origin: Origin) -> Node | None:
        """The one element that a tile holds everywhere; None if its elements may differ."""
        if node.op == "splat":
            return node.operands[0]
        shape = node.type.shape
        if shape == ():
            return node
        if shape is None or math.prod(shape) != 1:
            return None
        source = node.operands[0] if node.op == "reshape" else node
        if source.type.shape == ():
            return source
        return self.graph.pure("reshape", (), (source,), node.type.with_shape(()), origin)

    def note(self, rule: RuleId) -> None:
        """Remember that a rule was used."""
        self.rules.add(rule)

    def _rewritten(
        self, op: str, attrs: tuple[str, ...], operands: tuple[Node, ...], type_: Type, origin: Origin
    ) -> Node | None:
        if op in ("reshape", "broadcast"):
            return self._reshaped(op, operands[0], type_, origin)
        if op in ELEMENTWISE and type_.shape:
            scalars = [self.scalar(node, origin) for node in operands]
            known = tuple(node for node in scalars if node is not None)
            if len(known) == len(operands):
                if not all(node.op == "constant" for node in known):
                    self.note(RuleId.SPLAT_LIFT)
                inner = self.make(op, attrs, known, type_.with_shape(()), origin)
                return self.splat(inner, type_, origin)
        return arithmetic.rewrite(self, op, attrs, operands, type_, origin)

    def _reshaped(self, op: str, source: Node, type_: Type, origin: Origin) -> Node | None:
        if source.type == type_:
            self.note(RuleId.RESHAPE)
            return source
        if source.op == op:
            self.note(RuleId.RESHAPE)
            return self.make(op, (), source.operands, type_, origin)
        scalar = self.scalar(source, origin)
        if scalar is None:
            return None
        if scalar.op != "constant" or source.op == "splat":
            self.note(RuleId.SPLAT)
        return self.splat(scalar, type_, origin)

    def _pinned(self, op: str, attrs: tuple[str, ...], operands: tuple[Node, ...], type_: Type) -> Region | None:
        divisor = arithmetic.integer_of(operands[-1])
        if divisor is not None and divisor not in (0, -1):
            return None
        place: Region | None = self.region
        while place is not None:  # what an enclosing region has already computed need not be computed again
            if self.graph.has(op, attrs, operands, type_, place):
                return place
            place = place.parent
        return self.region

"""The data flow of an entry: nodes that know what they depend on, and regions with their effects."""

from collections.abc import Hashable
from enum import StrEnum

from farm.tileir.span import Source, Span
from farm.tileir.types import Type


class Role(StrEnum):
    """What an operand is to its operation."""

    OPERAND = "operand"  #: plain, its position counts
    INDEX = "index"  #: an index of a view
    SHAPE = "extent"  #: an extent of a view
    STRIDE = "stride"  #: a stride of a view
    POINTER = "pointer"  #: where memory is touched
    VALUE = "value"  #: what is stored
    MASK = "mask"  #: which elements are touched
    PADDING = "padding"  #: what excluded elements hold
    TOKEN = "token"  #: what must have happened before
    BOUND = "loop bound"  #: lower bound, upper bound or step of a loop
    CONDITION = "condition"  #: of a branch
    INIT = "initial carried value"  #: of a loop
    NEXT = "next carried value"  #: of a loop
    RESULT = "result"  #: of a branch, a loop or a combiner
    COMBINER = "combiner"  #: what a reduction combines with


class Origin:
    """Where a node came from; shared by all nodes of an operation."""

    __slots__ = ("name", "predicate", "source", "span")

    def __init__(self, name: str, span: Span | None, source: Source | None, predicate: str = "") -> None:
        self.name = name
        self.span = span
        self.source = source
        self.predicate = predicate  #: of a comparison, as written


class Region:
    """A body: the effects in it, in order, and what holds it."""

    __slots__ = ("branch", "effects", "owner", "parent")

    def __init__(self, parent: "Region | None", owner: "Node | None", branch: int) -> None:
        self.parent = parent
        self.owner = owner  #: the loop or branch whose body this is; None: the entry
        self.branch = branch  #: which body of it
        self.effects: list[Node] = []

    def inside(self, other: "Region") -> bool:
        """Whether this is `other` or lies in it."""
        region: Region | None = self
        while region is not None:
            if region is other:
                return True
            region = region.parent
        return False


class Node:
    """A value, an effect, or both. Its identity is its meaning on one side of a comparison."""

    __slots__ = ("attrs", "hints", "home", "id", "op", "operands", "origin", "roles", "type")

    def __init__(
        self,
        id_: int,
        op: str,
        attrs: tuple[Hashable, ...],
        operands: tuple["Node", ...],
        roles: tuple[Role, ...],
        type_: Type,
        home: Region,
        origin: Origin,
    ) -> None:
        self.id = id_
        self.hints = ""  #: what a memory access hints on the compared targets
        self.op = op
        self.attrs = attrs
        self.operands = operands
        self.roles = roles
        self.type = type_
        self.home = home  #: the innermost region that it depends on
        self.origin = origin

    def __repr__(self) -> str:
        return f"%{self.id} = {self.op}{list(self.attrs)}({', '.join(f'%{n.id}' for n in self.operands)})"


class Loop(Node):
    """A `for` or `loop`."""

    __slots__ = ("args", "body", "breaks", "continues", "index", "inits")

    index: Node | None  #: the index of a `for`
    args: tuple[Node, ...]  #: carried values as the body sees them
    inits: tuple[Node, ...]
    continues: list[Node]  #: terminators that start the next iteration, in order
    breaks: list[Node]  #: terminators that end a `loop`, in order
    body: Region


class Branch(Node):
    """An `if`."""

    __slots__ = ("bodies", "yields")

    bodies: tuple[Region, ...]  #: then, else
    yields: list[tuple[Node, ...] | None]  #: what each body yields; None: it leaves otherwise


class Graph:
    """Makes nodes, one for each distinct meaning."""

    def __init__(self) -> None:
        self.top = Region(None, None, 0)
        self.nodes: list[Node] = []
        self._known: dict[tuple[object, ...], Node] = {}

    def pure(
        self,
        op: str,
        attrs: tuple[Hashable, ...],
        operands: tuple[Node, ...],
        type_: Type,
        origin: Origin,
        roles: tuple[Role, ...] | None = None,
        home: Region | None = None,
    ) -> Node:
        """The node of an operation without effects; `home` pins it to a region."""
        key = (op, attrs, tuple(node.id for node in operands), type_, home)
        found = self._known.get(key)
        if found is None:
            place = home or self._deepest(operands)
            found = self._known[key] = Node(
                len(self.nodes), op, attrs, operands, roles or _plain(operands), type_, place, origin
            )
            self.nodes.append(found)
        return found

    def has(
        self, op: str, attrs: tuple[Hashable, ...], operands: tuple[Node, ...], type_: Type, home: Region
    ) -> bool:
        """Whether this operation has been made in a region already."""
        return (op, attrs, tuple(node.id for node in operands), type_, home) in self._known

    def unique(
        self,
        op: str,
        attrs: tuple[Hashable, ...],
        operands: tuple[Node, ...],
        type_: Type,
        origin: Origin,
        home: Region,
        roles: tuple[Role, ...] | None = None,
        kind: type[Node] = Node,
    ) -> Node:
        """A node that is like no other: an effect, a loop, a branch, a loop's argument."""
        node = kind(len(self.nodes), op, attrs, operands, roles or _plain(operands), type_, home, origin)
        self.nodes.append(node)
        return node

    def _deepest(self, operands: tuple[Node, ...]) -> Region:
        deepest = self.top
        for node in operands:
            if node.home is not deepest and node.home.inside(deepest):
                deepest = node.home
        return deepest


def _plain(operands: tuple[Node, ...]) -> tuple[Role, ...]:
    return (Role.OPERAND,) * len(operands)

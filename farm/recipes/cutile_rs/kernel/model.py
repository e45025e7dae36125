"""Values during translation.

One entry is translated for all its signatures at once: each signature is a *lane*, and whatever may
differ between signatures (an element type, a tile extent, a constant) carries one concrete value
a lane beside the Rust code that stands for all of them.
"""

import ast
from dataclasses import dataclass, field
from typing import Any

Lanes = tuple[Any, ...]


@dataclass(frozen=True)
class DType:
    """An element type: `f32`, or a generic such as `E`."""

    code: str  #: Rust name
    lanes: tuple[str, ...]  #: short name in each lane


@dataclass(frozen=True)
class Dim:
    """A tile extent: a literal or a const generic."""

    code: str  #: Rust expression
    lanes: tuple[int, ...]  #: value in each lane

    @property
    def one(self) -> bool:
        """Whether it is 1, in every lane."""
        return set(self.lanes) == {1}


@dataclass(frozen=True)
class TileType:
    """Element type and shape; rank 0 is a scalar."""

    dtype: DType
    shape: tuple[Dim, ...]


@dataclass(eq=False)
class Node:
    """One operation of the kernel being written."""

    op: str
    type: TileType | None  #: None: has no result
    operands: tuple["Node", ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    name: str | None = None  #: what the source calls the result
    place: ast.AST | None = None  #: where in the source it comes from
    body: "Block | None" = None  #: of a loop or a branch taken
    other: "Block | None" = None  #: of a branch not taken


@dataclass(eq=False)
class Block:
    """Operations in order, with what a region takes in and hands out."""

    nodes: list[Node] = field(default_factory=list)
    arguments: list[Node] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    comments: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """A value that the source knows while it compiles: number, string, None, enum member, element type."""

    lanes: Lanes
    code: str | None = None  #: Rust expression where the lanes may differ; None: a literal
    source: str | None = None  #: the same in the source's terms, over the kernel's parameters


@dataclass(frozen=True)
class Items:
    """A tuple or list of values."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class Array:
    """An array parameter."""

    name: str
    dtype: DType
    rank: int


@dataclass(frozen=True)
class Api:
    """A dotted name of the source language: `exp`, `PaddingMode.ZERO`."""

    name: str


@dataclass(frozen=True)
class Method:
    """A method of a value, not called yet."""

    owner: Any
    name: str


@dataclass(frozen=True)
class Function:
    """A helper function of the source text, inlined where it is called."""

    definition: ast.FunctionDef
    path: str


@dataclass(frozen=True)
class Range:
    """A `range(..)` of a for loop."""

    start: Any
    stop: Any
    step: Any


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What an entry's text relies on about one of its arrays."""

    viewed: bool  #: accessed by tile, through a tensor view
    unit_strides: tuple[bool, ...]  #: per axis: the stride is 1
    unit_extents: tuple[bool, ...]  #: per axis: the extent is 1, stated in the view's type

    def lone(self, axis: int) -> bool:
        """Whether the axis has one place only, so that no address depends on its stride."""
        return self.viewed and self.unit_extents[axis]

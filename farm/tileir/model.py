"""A Tile IR module as data: what was written, in order, with a place for everything."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from farm.tileir.span import Source, Span
from farm.tileir.types import Type


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A definition: an operation's result, an entry's parameter, or a region's argument."""

    name: str  #: without `%`
    type: Type
    count: int = 1  #: values under this name (`%for:3`), told apart by `#0`, `#1`, ...
    span: Span = field(compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """A mention of a value."""

    name: str  #: without `%`
    index: int | None  #: of `%name#index`
    span: Span = field(compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One piece of an operation's body: an operand, a keyword, a list or a `key = value`."""

    key: str | None  #: of `token=%0`, `dim=1`; `in`, `to`, `step`, `iter_values` in a loop's head
    words: tuple[Use | str, ...]  #: operands and literal text, in order
    bracketed: bool = False  #: written as a list in `[]`
    comma: bool = False  #: a comma precedes it


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """The body of an operation."""

    args: tuple[Value, ...]
    ops: tuple["Op", ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Op:
    """An operation."""

    name: str
    results: tuple[Value, ...]
    items: tuple[Item, ...]
    operand_types: tuple[Type, ...]  #: written before `->`, or all of them
    result_types: tuple[Type, ...]  #: written after `->`
    regions: tuple[Region, ...]
    span: Span = field(compare=False)
    source: Source | None  #: with -g

    @property
    def uses(self) -> Iterator[Use]:
        """Every operand, in the order written."""
        return (word for item in self.items for word in item.words if isinstance(word, Use))


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A kernel."""

    symbol: str
    params: tuple[Value, ...]
    hints: str | None  #: text between `<` and `>` of the entry's optimisation hints
    body: Region
    span: Span = field(compare=False)
    source: Source | None  #: with -g


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """One Tile IR text."""

    globals: tuple[Op, ...]  #: definitions beside the entries
    entries: tuple[Entry, ...]


def entry_parameters(module: Module, symbol: str | None = None) -> tuple[Type, ...]:
    """Types of an entry's parameters in order, of the only or first entry without a symbol.

    Raises KeyError when the module has no such entry.
    """
    for entry in module.entries:
        if symbol in (None, entry.symbol):
            return tuple(param.type for param in entry.params)
    raise KeyError(symbol)

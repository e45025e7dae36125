"""Which rows are run to see how the op is called: small ones that differ in more than their sizes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the source backend."""

    index: int  #: position among the collected ones
    function: str
    params: dict[str, Any]


def choose(rows: Sequence[Row], most: int) -> list[Row]:
    """At most `most` rows, small ones first: the smallest of each function with its dtypes and flags, in turn.

    A row's size is the product of the integers in its parameters, so far as they are extents.
    """
    smallest: dict[tuple[str, tuple[str, ...]], Row] = {}
    for row in sorted(rows, key=lambda row: (size(row), row.index)):
        smallest.setdefault((row.function, kind(row)), row)
    turns: dict[str, list[Row]] = {}
    for row in sorted(smallest.values(), key=lambda row: row.index):
        turns.setdefault(row.function, []).append(row)
    chosen: list[Row] = []
    while any(turns.values()) and len(chosen) < most:
        for waiting in turns.values():
            if waiting and len(chosen) < most:
                # From both ends in turn: parametrisation varies the last parameter first.
                chosen.append(waiting.pop(0 if len(chosen) % 2 == 0 else -1))
    return sorted(chosen, key=lambda row: (size(row), row.index))


def size(row: Row) -> float:
    """Logarithm of the product of the row's integers."""
    return sum(math.log(max(abs(n), 1)) for n in _integers(list(row.params.values())))


def kind(row: Row) -> tuple[str, ...]:
    """What is no extent among the parameters: types, flags, names, None."""
    return tuple(
        f"{name}={_text(value)}"
        for name, value in sorted(row.params.items())
        if "backend" not in name.lower() and not _numeric(value)
    )


def _numeric(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_numeric(item) for item in value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _integers(item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value

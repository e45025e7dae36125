"""What the runner of rows and its child processes tell each other: lines of JSON on two pipes."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farm.codec import decode, encode
from farm.measured.records import Outcome, ResultFact

#: What a null kernel gives in place of the op's results, see nulls.py.
NULLS = ("zeros", "mean", "input", "last")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a child is to do; it stays the same for all rows."""

    tree: str
    package_path: str
    tests: tuple[str, ...]
    perf: tuple[str, ...]  #: globs of test functions that measure and are no rows
    backend: str  #: whose rows
    registry: str  #: `module:attribute`
    module: str  #: the op's implementation for this backend
    guarded: bool  #: the target runs: the source language may not launch
    refuse: bool  #: its import is refused as well
    source_dsl: str
    source_module: str
    candidate: tuple[str, ...]  #: files that the patch brought or changed, absolute
    collector: bool  #: device activity is collected
    hollow: bool = False  #: the library does nothing, so what it did not write must not be there by chance
    library_place: str = ""  #: relative to the tree


@dataclass(frozen=True, kw_only=True)
class ItemName:
    """A row as collected."""

    key: str
    node: str


@dataclass(frozen=True, kw_only=True)
class Collection:
    """What a child collected."""

    rows: tuple[ItemName, ...]
    uncollected: tuple[str, ...]
    has_device: bool  #: torch sees a GPU


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A token of the collector."""

    token: int
    inside: bool  #: what came since the token before ran inside the op's calls


@dataclass(frozen=True, kw_only=True)
class RowEnd:
    """How a row ended."""

    node: str
    number: int  #: the command's
    outcome: Outcome
    reason: str | None
    seconds: float
    results: tuple[ResultFact, ...]
    backwards: int
    marks: tuple[Mark, ...]
    exports: dict[str, int]  #: calls of the library's exports inside the op's calls
    no_null: str | None  #: why the null kernel says nothing about this row
    broken: bool  #: the device does not answer any more: no further row may run in this process


@dataclass(frozen=True, kw_only=True)
class Command:
    """A row to run."""

    node: str
    null: str | None
    watch: bool  #: device activity is collected; where not, a profiler of the watched code has CUPTI to itself
    number: int = 0  #: counts the commands of a child, so that each has one answer


@dataclass(frozen=True, kw_only=True)
class ProcessFacts:
    """What is left of the process after its last row."""

    facts: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """A line from a child that is no message."""

    text: str


_TYPES = {kind.__name__: kind for kind in (Collection, RowEnd, ProcessFacts, Command)}


def line(message: Any) -> bytes:
    """A message as a line."""
    return (json.dumps({type(message).__name__: encode(message)}) + "\n").encode()


def parsed(text: str | bytes) -> Any:
    """The message in a line. Raises ValueError for anything else."""
    ((name, value),) = json.loads(text).items()
    if name not in _TYPES:
        raise ValueError(f"unknown message {name}")
    return decode(_TYPES[name], value)


class Channel:
    """The child's ends of the pipes."""

    __slots__ = ("_in", "_out")

    def __init__(self, incoming: int, outgoing: int) -> None:
        for descriptor in (incoming, outgoing):
            os.set_inheritable(descriptor, False)
        self._in = os.fdopen(incoming, "rb")
        self._out = outgoing

    def send(self, message: Any) -> None:
        """Tell the parent; it is in the pipe when this returns."""
        rest = line(message)
        while rest:
            rest = rest[os.write(self._out, rest) :]

    def commands(self) -> Iterator[Command]:
        """Rows to run, until the parent closes its end."""
        for text in self._in:
            yield parsed(text)

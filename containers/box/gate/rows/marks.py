"""Which device activity, and which calls of the library, belong to the op: marks at its borders."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from containers.box.gate.rows.messages import Mark
from containers.interpose import COUNTS, read_counts


class Marks:
    """Marks where the op begins and ends, across its nested calls, in whatever thread they run."""

    def __init__(
        self,
        *,
        synchronize: Callable[[], None],
        flush: Callable[[int], bool] | None,
        begin: Callable[[], bool] = lambda: True,
        end: Callable[[], bool] = lambda: True,
    ) -> None:
        self._synchronize = synchronize
        self._flush = flush
        self._begin = begin
        self._end = end
        self._watching = False
        self._held = True
        named = os.environ.get(COUNTS)
        self._counts = Path(named) if named else None
        self._token = 0
        self._depth = 0
        self._at_entry: dict[str, int] = {}
        self._marks: list[Mark] = []
        self._exports: Counter[str] = Counter()

    @property
    def inside(self) -> bool:
        """Whether the op runs now."""
        return self._depth > 0

    def begin_row(self, *, watch: bool = True) -> None:
        """Forget what was before; collect device activity from now on, or leave it alone."""
        self._depth = 0
        self._marks = []
        self._exports = Counter()
        if watch and not (self._watching and self._held):  # or a profiler has taken the records in the row before
            self._begin()
        elif self._watching and not watch:
            self._end()
        self._watching, self._held = watch, True
        self._mark(inside=False)

    def end_row(self) -> tuple[tuple[Mark, ...], dict[str, int]]:
        """The row's marks, and the calls of exports inside the op."""
        self._mark(inside=False)
        return tuple(self._marks), dict(self._exports)

    @contextmanager
    def op(self) -> Iterator[None]:
        """The op runs while this lasts."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """The op begins."""
        if self._depth == 0:
            self._mark(inside=False)
            self._at_entry = self._calls()
        self._depth += 1

    def leave(self) -> None:
        """The op ends; all that it started on the device is awaited."""
        if self._depth == 0:  # a row ended in between, by an exception in autograd's engine
            return
        if self._depth == 1:
            self._mark(inside=True)
            for name, calls in self._calls().items():
                if more := calls - self._at_entry.get(name, 0):
                    self._exports[name] += more
        self._depth -= 1

    def _mark(self, *, inside: bool) -> None:
        if self._flush is None or not self._watching:
            return
        self._synchronize()
        self._token += 1
        self._held = self._flush(self._token) and self._held
        self._marks.append(Mark(token=self._token, inside=inside))

    def _calls(self) -> dict[str, int]:
        return dict(read_counts(self._counts)) if self._counts is not None else {}

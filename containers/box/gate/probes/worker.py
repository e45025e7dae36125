"""A worker: a share of the cases and a pair of processes for them, the target's and, after it, the source's."""

import time
from collections.abc import Callable
from pathlib import Path

from containers.box.gate.probes.side import ProcessEnded, Side
from farm.measured.records import NOT_RUN

#: Processes of one side of a worker: each end costs a start and the compiled code of what is left.
STARTS = 6
NO_TIME = f"{NOT_RUN}no time was left"


class Worker:
    """Computes its share in one thread at a time. Files are `<side>-<number>` in the folder of the cases."""

    def __init__(self, *, target: Side, source: Side, folder: Path, case_limit_s: float) -> None:
        self.target = target
        self.source = source
        self.numbers: list[int] = []  #: of its cases, in the order in which they are computed
        self.aims: dict[int, str | None] = {}  #: why the target gave no result; None: it gave one
        self._folder = folder
        self._case_limit_s = case_limit_s
        self._stopped = False

    def targets(self, until: float) -> None:
        """Have the target compute all cases; no process of it is left. `until` is on the monotonic clock."""
        for number in self.numbers:
            self.aims[number] = self._attempt(self.target, "target", number, until)
        self.target.end()

    def sources(self, until: float, done: Callable[[int, str | None], None]) -> None:
        """Have the source compute what the target had time for; `done` gets number and reason for no result."""
        for number in self.numbers:
            left_out = self.aims[number] == NO_TIME
            done(number, NO_TIME if left_out else self._attempt(self.source, "source", number, until))
        self.source.end()

    def stop(self) -> None:
        """From another thread: compute nothing more. Processes die; `end` is still to be called."""
        self._stopped = True
        self.target.kill()
        self.source.kill()

    def end(self) -> None:
        """End both processes, when no thread uses them."""
        self.target.end()
        self.source.end()

    def _attempt(self, side: Side, name: str, number: int, until: float) -> str | None:
        """Have a side compute a case into its file. The reason where there is none."""
        left = until - time.monotonic()
        if left < 1 or self._stopped:
            return NO_TIME
        try:
            if not side.runs:
                if side.starts >= STARTS:
                    return f"{NOT_RUN}{side.starts} processes have died"
                side.start(left)
                left = until - time.monotonic()
            files = {"case": f"case-{number}", "out": f"{name}-{number}"}
            limit = min(self._case_limit_s, left)
            side.order(limit, **{key: str(self._folder / file) for key, file in files.items()})
        except ProcessEnded as ended:
            return str(ended) if left > self._case_limit_s or "died" in str(ended) else NO_TIME
        return None

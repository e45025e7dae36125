"""Who records what runs on the device of a child: the collector, or a count of calls where there is no GPU."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from containers.box.gate.collector import Flush, Reader, State
from farm.measured.records import DeviceEvent


class Recorder(Protocol):
    """Of one child; made before it, closed after it."""

    @property
    def inherited(self) -> tuple[int, ...]:
        """Descriptors that the child inherits."""

    def variables(self) -> dict[str, str]:
        """Environment of the child."""

    def started(self) -> None:
        """The child was started."""

    def until(self, token: int, timeout_s: float) -> Flush:
        """What ran since the last token; the child said before that it sent `token`."""

    def close(self) -> None:
        """The child has ended."""


class CollectorRecorder:
    """The native collector in the child."""

    def __init__(self, library: Path) -> None:
        self._library, self._reader = library, Reader()

    @property
    def inherited(self) -> tuple[int, ...]:
        """The collector's pipe."""
        return self._reader.inherited

    def variables(self) -> dict[str, str]:
        """So that the driver loads the collector."""
        return self._reader.environment(self._library)

    def started(self) -> None:
        """Close the parent's end."""
        self._reader.started()

    def until(self, token: int, timeout_s: float) -> Flush:
        """As the reader."""
        return self._reader.until(token, timeout_s)

    def close(self) -> None:
        """Wait for the end of the pipe."""
        self._reader.close()


class CountingRecorder:
    """Stands for the collector without a GPU: an event of one microsecond for each call that `counts` saw.

    `counts()` gives the calls so far by function, e.g. `containers.interpose.Counts.read`; `lose` names tokens
    at which a record is lost.
    """

    def __init__(
        self,
        counts: Callable[[], Mapping[str, int]],
        variables: Mapping[str, str],
        *,
        lose: frozenset[int] = frozenset(),
    ) -> None:
        self._counts, self._variables, self._lose = counts, dict(variables), lose
        self._before: dict[str, int] = {}
        self._clock_ns = 1

    @property
    def inherited(self) -> tuple[int, ...]:
        """None."""
        return ()

    def variables(self) -> dict[str, str]:
        """What makes the child's library count."""
        return self._variables

    def started(self) -> None:
        """Nothing to do."""

    def until(self, token: int, timeout_s: float) -> Flush:
        """The calls since the last token."""
        del timeout_s
        now = dict(self._counts())
        events = []
        for symbol, calls in sorted(now.items()):
            for _ in range(calls - self._before.get(symbol, 0)):
                start = self._clock_ns
                self._clock_ns += 1000
                events.append(
                    DeviceEvent(symbol=symbol, start_ns=start, end_ns=start + 1000, stream=7, correlation=start)
                )
        self._before = now
        return Flush(
            token=token,
            state=State.COMPLETE,
            events=tuple(events),
            lost=int(token in self._lose),
            begins=1,
            problems=(),
        )

    def close(self) -> None:
        """Nothing to do."""

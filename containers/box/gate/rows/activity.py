"""What ran inside the op's calls, as the parent learns it: by CUPTI, or by the library's exports on a CPU."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from containers.box.gate.collector import Reader, State
from containers.box.gate.rows.messages import RowEnd

_TOKEN_LIMIT_S = 60


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Device activity inside the op's calls of one row."""

    kernels: dict[str, int] | None  #: counts by symbol; None: nothing can be said
    lost: int  #: records known to be missing
    taken: bool  #: another profiler took them: the row is worth a second run, when its tuner has tuned


class Recorder(Protocol):
    """The parent's side of a child's device activity."""

    has_device: bool  #: whether the child sees a GPU, once it has said so

    @property
    def environment(self) -> dict[str, str]:
        """For the child."""

    @property
    def inherited(self) -> tuple[int, ...]:
        """Descriptors for the child."""

    def started(self) -> None:
        """The child runs."""

    def row(self, end: RowEnd) -> Seen:
        """What ran in a row that ended."""

    def close(self) -> None:
        """The child has ended."""


class ExportRecorder:
    """Without a GPU: the exports of the interposed library stand for kernels. On a GPU it can say nothing."""

    environment: dict[str, str] = {}
    inherited: tuple[int, ...] = ()

    def __init__(self) -> None:
        self.has_device = False

    def started(self) -> None:
        """Nothing to do."""

    def row(self, end: RowEnd) -> Seen:
        """The exports called, unless there is a device that was not watched."""
        return Seen(kernels=None if self.has_device else end.exports, lost=0, taken=False)

    def close(self) -> None:
        """Nothing to do."""


class CuptiRecorder:
    """Over the native collector, see containers/box/gate/collector.py."""

    def __init__(self, library: Path, reader: Reader | None = None) -> None:
        self.has_device = False
        self._reader = reader or Reader()
        self._library = library
        self._silent = False

    @property
    def environment(self) -> dict[str, str]:
        """The driver loads the collector into the child."""
        return self._reader.environment(self._library)

    @property
    def inherited(self) -> tuple[int, ...]:
        """The pipe of records."""
        return self._reader.inherited

    def started(self) -> None:
        """Close the parent's end of it."""
        self._reader.started()

    def row(self, end: RowEnd) -> Seen:
        """Sum up what the collector gave between the row's marks; without a GPU, the exports called."""
        if not self.has_device:
            return Seen(kernels=end.exports, lost=0, taken=False)
        kernels: Counter[str] = Counter()
        lost, usable, taken = 0, bool(end.marks) and not self._silent, False
        for mark in end.marks if usable else ():
            flush = self._reader.until(mark.token, _TOKEN_LIMIT_S)
            if flush.state is State.ENDED:
                self._silent = True
                return Seen(kernels=None, lost=lost, taken=False)
            # Before the first use of CUDA there is no context, and nothing can have run.
            if flush.state is State.NO_CONTEXT and not flush.events:
                continue
            if mark.inside:
                kernels.update(event.symbol for event in flush.events)
                # Rows are not timed: which kernels ran is known although their times are not.
                lost += flush.lost if flush.state is State.CLOCK else flush.missing
                taken = taken or flush.state is State.TAKEN
                usable = usable and flush.state in (State.COMPLETE, State.TAKEN, State.CLOCK)
        return Seen(kernels=dict(kernels) if usable else None, lost=lost, taken=taken)

    def close(self) -> None:
        """Wait for the end of the pipe."""
        self._reader.close()

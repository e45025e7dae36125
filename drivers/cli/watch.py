"""Waiting for a run: look, tell, pause, until nothing moves any more."""

from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from drivers.cli.tables import run_table, waiting
from farm.views import RunView

#: Pauses between two questions whether the farm still runs.
ASK_EVERY = 10


class Progress(Protocol):
    """Who is told how a run goes on. Entered before the first look, left after the last."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        """End; also after an error or Ctrl-C."""

    def show(self, view: RunView) -> None:
        """The run as it is now."""


def wait_until_settled(look: Callable[[], RunView], progress: Progress, pause: Callable[[], None]) -> RunView:
    """Look until every job is final or waits for something outside; the last view."""
    with progress:
        while True:
            view = look()
            progress.show(view)
            if view.settled:
                return view
            pause()


class Vigil:
    """Between two looks: sleep, and say once when nothing works on the run any more."""

    def __init__(
        self, *, pause: Callable[[], None], stopped: Callable[[], bool], say: Callable[[str], None]
    ) -> None:
        """`stopped` is asked at every `ASK_EVERY`th pause."""
        self._pause = pause
        self._stopped = stopped
        self._say = say
        self._pauses = 0
        self._said = False

    def __call__(self) -> None:
        self._pause()
        self._pauses += 1
        if self._pauses % ASK_EVERY == 0:
            stopped = self._stopped()
            if stopped and not self._said:
                self._say("nothing works on the run now: `farm up` starts the farm; still waiting")
            self._said = stopped


class PlainLines:
    """One line a change of state: for pipes, logs and CI."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._say = say
        self._clock = clock
        self._seen: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        return None

    def show(self, view: RunView) -> None:
        """See Progress."""
        at = datetime.fromtimestamp(self._clock(), tz=UTC).strftime("%H:%M:%S")
        for job in view.jobs:
            notes = [f"attempt {job.attempt}"] if job.attempt > 1 else []
            notes += [waiting(job)] if waiting(job) else []
            state = job.state.value + (f" ({', '.join(notes)})" if notes else "")
            if self._seen.get(job.id) == state:
                continue
            before = f"{self._seen[job.id]} -> " if job.id in self._seen else ""
            self._seen[job.id] = state
            self._say(f"{at} {job.op}: {before}{state}" + (f": {job.summary}" if job.summary else ""))


class LiveTable:
    """The run's table, redrawn in place: for terminals."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, place)

    def show(self, view: RunView) -> None:
        """See Progress."""
        self._live.update(run_table(view))

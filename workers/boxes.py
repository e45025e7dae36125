"""Boxes as jobs see them: start one when there is room, look at it, know how it ended."""

import fcntl
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from containers.box.files import read_json, write_json
from containers.classify import BoxExit, Ending, classify
from containers.engine import BoxSpec, BoxStatus, Engine
from containers.spec import DEVICE, BoxFolders, BoxSettings, box_name, box_spec
from farm.orders import BoxOrder
from workers.aside import aside

#: A box that was killed or vanished is started again on the same folders, so it resumes at its stage.
MOST_STARTS = 3
#: A box program that has not touched its heartbeat for so long hangs.
HEARTBEAT_LIMIT_S = 120.0
#: A young box is watched this long within one step, so that a short one costs no further message.
WATCH_S = 2.5
#: While watched, the engine is asked this often how the box is, and the folder this often for its result.
ASK_S, SEEK_S = 0.3, 0.005
#: For a box that is ended from outside; one that has written its result has nothing left to do.
GRACE_S = 5.0
#: A program that has written its result ends by itself within this time, or is ended.
END_S = 0.5


class Sight(StrEnum):
    """What a look at a box saw."""

    FULL = "full"  #: it was not started: as many boxes run as may
    RUNNING = "running"  #: it works
    DONE = "done"  #: its result is there
    BROKEN = "broken"  #: it ended without a result, and restarting it is no use
    HANGS = "hangs"  #: it was stopped: too long without progress


@dataclass(frozen=True, kw_only=True)
class Look:
    """One look at a box."""

    sight: Sight
    name: str
    status: BoxStatus | None = None
    ending: Ending | None = None  #: for BROKEN and HANGS
    log: str = ""  #: last lines of its output, when it ended
    age_s: float = 0.0  #: for RUNNING
    first: str | None = None  #: for FULL: the job that the free place belongs to; None: there is none


@dataclass(frozen=True, kw_only=True)
class _End:
    """How a box with a result ended."""

    exit_code: int | None  #: None: it still ran
    oom_killed: bool
    log: str  #: last lines of its output


class Boxes:
    """The boxes of one farm on this host; those with a device are counted apart."""

    def __init__(self, *, engine: Engine, settings: BoxSettings, lock: Path, most: int) -> None:
        """`most` boxes of this farm run at once; `lock` is a file that its workers share."""
        self._engine = engine
        self._settings = settings
        self._lock = lock
        self.most = most
        self._removals: dict[str, threading.Thread] = {}  # under way, by box

    def look(
        self,
        order: BoxOrder,
        folders: BoxFolders,
        *,
        result: str,
        limit_s: float,
        ahead: Callable[[], Sequence[str]] = tuple,
    ) -> Look:
        """Start the order's box unless it was, and see how it does. Raises EngineUnavailable.

        `ahead` names the jobs that wait for a box and come before this one, first one first; it is asked while no
        other worker starts a box. After DONE, BROKEN and HANGS nothing of the box runs.
        """
        name = self.name(order)
        done = folders.out / result
        self._await_removal(name)
        status = self._engine.inspect(name)
        if status is None and not os.path.lexists(done):
            if _starts(folders.order) >= MOST_STARTS:
                return self._ended(name, None, folders)
            started = self._start(order, folders, ahead)
            if not isinstance(started, BoxStatus):
                return Look(sight=Sight.FULL, name=name, first=started)
            status = started
        deadline = time.monotonic() + WATCH_S
        while status is not None and status.running and not os.path.lexists(done):
            age_s = time.time() - (status.started_at or time.time())
            silent_s = min(age_s, _heartbeat_age_s(folders.out))
            if age_s > limit_s:
                return self._stop(name, status, f"no result after {age_s:.0f} s")
            if silent_s > HEARTBEAT_LIMIT_S:
                return self._stop(name, status, f"no sign of life for {silent_s:.0f} s")
            if age_s > 2 * WATCH_S or time.monotonic() > deadline:
                return Look(sight=Sight.RUNNING, name=name, status=status, age_s=age_s)
            if not _appears(done, ASK_S):
                status = self._engine.inspect(name)
        if os.path.lexists(done):
            return self._done(name, status, folders)
        return self._ended(name, status, folders)

    def remove(self, order: BoxOrder) -> str:
        """Remove the order's box; the last lines of its output."""
        name = self.name(order)
        self._await_removal(name)
        status = self._engine.inspect(name)
        log = self._engine.logs(name, tail=200) if status is not None else ""
        self._engine.remove(name, grace_s=GRACE_S)
        return log

    def name(self, order: BoxOrder) -> str:
        """The order's box's name."""
        return box_name(self._settings.farm, order)

    def _spec(self, order: BoxOrder, folders: BoxFolders) -> BoxSpec:
        return box_spec(order, folders, self._settings)

    def _running(self) -> int:
        """How many boxes run that share the places of this one."""
        mine = self._engine.list({"farm": self._settings.farm})
        return sum(box.running and DEVICE not in box.labels for box in mine)

    def _start(
        self, order: BoxOrder, folders: BoxFolders, ahead: Callable[[], Sequence[str]]
    ) -> BoxStatus | str | None:
        """The box, or the job that the free place belongs to, or None where no place is free."""
        with _locked(self._lock):
            free = self.most - self._running()
            if free <= 0:
                return None
            before = ahead()
            if len(before) >= free:
                return before[0]
            status = self._engine.ensure(self._spec(order, folders))
            _count_start(folders.order)
            return status

    def _done(self, name: str, status: BoxStatus | None, folders: BoxFolders) -> Look:
        """The result is written last, so what is left of the box is ended without grace.

        Nothing of it may run while its folders are read. One that has ended is removed beside the step; its
        end is written down before, for whoever looks again after a crash.
        """
        deadline = time.monotonic() + END_S
        while status is not None and status.running and time.monotonic() < deadline:
            time.sleep(2 * SEEK_S)
            status = self._engine.inspect(name)
        record = folders.order.with_suffix(".end")
        if status is not None:
            log = self._engine.logs(name, tail=200)
            write_json(record, _End(exit_code=status.exit_code, oom_killed=status.oom_killed, log=log))
            if status.running:
                self._engine.remove(name, grace_s=0)
            else:
                self._removals[name] = aside(lambda: self._engine.remove(name, grace_s=0))
        if not record.exists():
            return Look(sight=Sight.DONE, name=name)
        end = read_json(record, _End)
        status = BoxStatus(
            name=name,
            running=False,
            exit_code=end.exit_code,
            oom_killed=end.oom_killed,
            started_at=None,
            labels={},
        )
        return Look(sight=Sight.DONE, name=name, status=status, log=end.log)

    def _await_removal(self, name: str) -> None:
        """A retry may give a box the name of one that is being removed."""
        self._removals = {key: thread for key, thread in self._removals.items() if thread.is_alive()}
        if name in self._removals:
            self._removals.pop(name).join()

    def _stop(self, name: str, status: BoxStatus, summary: str) -> Look:
        log = self._engine.logs(name, tail=200)
        self._engine.remove(name, grace_s=GRACE_S)
        ending = Ending(exit=BoxExit.KILLED, summary=summary, next_step="read the end of its log")
        return Look(sight=Sight.HANGS, name=name, status=status, ending=ending, log=log)

    def _ended(self, name: str, status: BoxStatus | None, folders: BoxFolders) -> Look:
        log = self._engine.logs(name, tail=200) if status is not None else ""
        ending = classify(status, log)
        again = ending.exit in (BoxExit.KILLED, BoxExit.GONE) and _starts(folders.order) < MOST_STARTS
        self._engine.remove(name, grace_s=GRACE_S)
        if again:
            return Look(sight=Sight.RUNNING, name=name, status=status)
        return Look(sight=Sight.BROKEN, name=name, status=status, ending=ending, log=log)


def _appears(path: Path, limit_s: float) -> bool:
    """Whether the path is there, now or within the time."""
    end = time.monotonic() + limit_s
    while not os.path.lexists(path):
        if time.monotonic() > end:
            return False
        time.sleep(SEEK_S)
    return True


def _heartbeat_age_s(out: Path) -> float:
    """Seconds since the box program's last sign of life; infinite before its first."""
    try:
        return time.time() - os.lstat(out / "heartbeat").st_mtime
    except FileNotFoundError:
        return math.inf


def _record(order: Path) -> Path:
    return order.with_suffix(".starts")


def _starts(order: Path) -> int:
    """How often the order's box was started."""
    try:
        return _record(order).stat().st_size
    except FileNotFoundError:
        return 0


def _count_start(order: Path) -> None:
    with _record(order).open("ab") as file:
        file.write(b".")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

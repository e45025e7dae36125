"""The logs of a box that still runs, read from the folder that it writes to, as an enemy's.

No name is followed through a link, only plain files are read, and no more than a bounded part of each: a box
may put there what it likes. What would steer a terminal is taken out.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farm.job import Job, JobState
from workers.places import places

#: Most bytes of one log, and most logs of one box, that one look reads.
LOG_BYTES, LOGS = 256 << 10, 32
#: What the names of a gate box's logs begin with among a job's artifacts.
GATE_PREFIX = "gate-"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}\.log")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a log."""

    name: str  #: as the artifact will be called, e.g. `A-1.log`, `gate-A-1.log`
    start: int  #: offset of its first byte
    end: int  #: offset behind its last byte
    text: str  #: printable


class LiveLogs:
    """What running boxes of one state folder have written so far."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def read(self, job: Job, seen: dict[str, int]) -> tuple[Part, ...]:
        """What the job's running box has written beyond the offsets in `seen`, by log; of much the last bytes.

        Nothing when no box of the job can be running, or when the folder may not be read.
        """
        at = places(self._state, job)
        match job.state:
            case JobState.RUNNING:
                folder, prefix = at.out, ""
            case JobState.VERIFYING:
                folder, prefix = at.gate_out, GATE_PREFIX
            case _:
                return ()
        try:
            with _opened(folder, None) as out, _opened("logs", out) as logs:
                names = sorted(name for name in os.listdir(logs) if _NAME.fullmatch(name))[:LOGS]
                parts = [_part(logs, name, prefix + name, seen.get(prefix + name, 0)) for name in names]
        except OSError:
            return ()
        return tuple(part for part in parts if part is not None)


def printable(data: bytes) -> str:
    """Text of a log without what would steer a terminal."""
    return _CONTROL.sub("\ufffd", data.decode("utf-8", "replace"))


def _part(folder: int, file: str, name: str, start: int) -> Part | None:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as log:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= start:
            return None
        start = max(start, found.st_size - LOG_BYTES)
        log.seek(start)
        data = log.read(found.st_size - start)
    # A character may be half written yet.
    whole = data[: data.rfind(b"\n") + 1]
    return Part(name=name, start=start, end=start + len(whole), text=printable(whole)) if whole else None


@contextmanager
def _opened(folder: Path | str, parent: int | None) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)

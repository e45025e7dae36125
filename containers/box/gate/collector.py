"""Device activity of a child process, through the native collector (containers/native/collector).

The parent makes a `Reader`, starts the child with `reader.environment(..)` and `pass_fds=reader.inherited`, then
calls `reader.started()`. The child calls `flush(token)` after a device synchronisation; the parent's
`reader.until(token)` gives what ran since the last token. Standard library alone.
"""

import ctypes
import functools
import os
import queue
import re
import struct
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO

from farm.measured.records import DeviceEvent

LIBRARY = "libtilefarm_collector.so"
PIPE = "TILEFARM_COLLECTOR_PIPE"
CUPTI = "TILEFARM_CUPTI"
INJECTION = "CUDA_INJECTION64_PATH"
_PIPE_BYTES = 1 << 20


class State(IntEnum):
    """What is known of the records up to a token; only COMPLETE is a measurement. Values as in frames.h."""

    COMPLETE = 0  #: a canary sent at the flush came through the collector
    TAKEN = 1  #: it did not: another profiler has taken the records, or CUPTI gives none
    NO_CONTEXT = 2  #: no CUDA context was current in the child
    NOT_LOADED = 3  #: the driver did not load the collector, or CUPTI could not be used
    ENDED = 4  #: the child closed the pipe before the token, or the token did not come in time
    IDLE = 5  #: nothing was collected: before `begin`, or after `end`
    CLOCK = 6  #: times of records are no nanoseconds of the host's clock, and durations say nothing


class _Frame(IntEnum):
    HELLO = 1
    SYMBOL = 2
    EVENT = 3
    LOST = 4
    TOKEN = 5
    BEGIN = 6
    ERROR = 7


_CANARY = 4


@dataclass(frozen=True, kw_only=True)
class Flush:
    """Everything between two tokens."""

    token: int
    state: State
    events: tuple[DeviceEvent, ...]
    lost: int  #: records that CUPTI dropped or gave no time
    begins: int  #: times that the collector registered itself; more than the parent asked for is foul play
    problems: tuple[str, ...]  #: errors in the collector's own words

    @property
    def missing(self) -> int:
        """Records known to be lost; at least one when the collection itself did not hold."""
        return self.lost if self.state is State.COMPLETE else max(self.lost, 1)


@dataclass(frozen=True, kw_only=True)
class _Ended:
    pass


class Reader:
    """Reads a child's frames in a thread of its own, so that the child never waits for the parent."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_inheritable(self._write, True)
        self.cupti_version: int | None = None  #: as CUPTI names it, once the child said so
        self._inode = os.fstat(self._write).st_ino
        self._queue: queue.Queue[Flush | _Ended] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)
        self._thread.start()

    @property
    def inherited(self) -> tuple[int, ...]:
        """Descriptors for `pass_fds`."""
        return (self._write,)

    def environment(self, library: Path, *, cupti: Path | None = None) -> dict[str, str]:
        """Variables for the child; `cupti` as `find_cupti` gives it unless named."""
        found = cupti or find_cupti()
        return {
            PIPE: f"{self._write}:{self._inode}",
            INJECTION: str(library.resolve()),
            **({CUPTI: str(found)} if found else {}),
        }

    def started(self) -> None:
        """Close the parent's own end for writing, after the child was started (or could not be)."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def until(self, token: int, timeout_s: float) -> Flush:
        """What came since the last token, up to `token`. Tokens that were given up before are skipped."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return _nothing(token, f"token {token} did not come within {timeout_s:g} s")
            if isinstance(item, _Ended):
                self._queue.put(item)
                return _nothing(token, "the child's pipe ended")
            if item.token == token:
                return item

    def close(self) -> None:
        """Wait for the end of the pipe; the child has ended or closed it."""
        self.started()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        gathered = _Gathered()
        with os.fdopen(self._read, "rb", buffering=_PIPE_BYTES) as file:
            for kind, payload in _frames(file):
                if kind == _Frame.HELLO:
                    self.cupti_version = int(struct.unpack_from("<I", payload)[0])
                flush = gathered.add(kind, payload)
                if flush is not None:
                    self._queue.put(flush)
        self._queue.put(_Ended())


class _Gathered:
    """Frames since the last token."""

    def __init__(self) -> None:
        self._symbols: dict[int, str] = {}
        self._events: list[DeviceEvent] = []
        self._lost = 0
        self._begins = 0
        self._problems: list[str] = []

    def add(self, kind: int, payload: bytes) -> Flush | None:
        """Take a frame; a token gives what was gathered."""
        if kind == _Frame.SYMBOL:
            self._symbols[struct.unpack_from("<I", payload)[0]] = payload[4:].decode(errors="replace")
        elif kind == _Frame.EVENT:
            what, symbol, stream, correlation, start, end = struct.unpack("<IIIIQQ", payload)
            if what != _CANARY:
                event = DeviceEvent(
                    symbol=self._symbols.get(symbol, f"symbol {symbol}"),
                    start_ns=start,
                    end_ns=end,
                    stream=stream,
                    correlation=correlation,
                )
                self._events.append(event)
        elif kind == _Frame.LOST:
            self._lost += struct.unpack("<Q", payload)[0]
        elif kind == _Frame.BEGIN:
            self._begins = struct.unpack("<Q", payload)[0]
        elif kind == _Frame.ERROR:
            self._problems.append(payload.decode(errors="replace"))
        elif kind == _Frame.TOKEN:
            return self._token(*struct.unpack("<QIi", payload))
        return None

    def _token(self, token: int, state: int, result: int) -> Flush:
        if result:
            self._problems.append(f"cuptiActivityFlushAll gave error {result}")
        flush = Flush(
            token=token,
            state=State(state) if not result or state else State.TAKEN,
            events=tuple(sorted(self._events, key=lambda event: (event.start_ns, event.end_ns))),
            lost=self._lost,
            begins=self._begins,
            problems=tuple(self._problems),
        )
        self._events, self._lost, self._problems = [], 0, []
        return flush


def _frames(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(kind, payload) until the end; a torn frame is the end."""
    while len(head := file.read(4)) == 4:
        kind, length = struct.unpack("<HH", head)
        payload = file.read(length)
        if len(payload) < length:
            return
        yield kind, payload


def _nothing(token: int, problem: str) -> Flush:
    return Flush(token=token, state=State.ENDED, events=(), lost=0, begins=0, problems=(problem,))


def find_cupti() -> Path | None:
    """The CUPTI library that this interpreter's torch uses: the same file, as a process can hold one CUPTI."""
    folders = [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    majors = ("13", "12")
    for folder in folders:
        version = folder / "torch" / "version.py"
        if version.is_file() and re.search(r"cuda[^=\n]*= *'12", version.read_text()):
            majors = ("12", "13")
    system = Path("/usr/local/cuda/extras/CUPTI/lib64")
    for major in majors:
        for folder in folders:
            for place in (f"nvidia/cu{major}/lib", "nvidia/cuda_cupti/lib"):
                found = folder / place / f"libcupti.so.{major}"
                if found.is_file():
                    return found
        if (found := system / f"libcupti.so.{major}").is_file():
            return found
    return None


def flush(token: int) -> bool:
    """In the child: deliver the records of finished work, then the token. The device is synchronised before.

    True if the collection held. Does nothing but answer False where there is no collector.
    """
    library = _library()
    return library is not None and bool(library.tilefarm_flush(ctypes.c_uint64(token)))


def begin() -> bool:
    """In the child: receive the records from now on, also after code that may have run a profiler."""
    library = _library()
    return library is not None and bool(library.tilefarm_begin())


def end() -> bool:
    """In the child: collect nothing until `begin`, so that a profiler of the watched code gets its own records."""
    library = _library()
    return library is not None and bool(library.tilefarm_end())


@functools.cache
def _library() -> ctypes.CDLL | None:
    path = os.environ.get(INJECTION)
    return ctypes.CDLL(path) if path and Path(path).is_file() else None

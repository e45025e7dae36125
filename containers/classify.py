"""What the end of a box means: exit codes, the engine's flags and the log's text as a `BoxExit`.

One exit code can mean several things, so this module is slow to conclude:
- A result file decides before anything here; call this for a box that left none.
- Text is read only of a box that ended with an error. Compiler and test output appears in logs as well,
  and a word in it proves nothing about the machine; hence signatures are the failing tool's own phrases.
- SIGKILL without the engine's word on memory is KILLED, not out of memory. `MemoryError` and
  `Cannot allocate memory` are not taken for OOM: a program can ask for too much while memory is free.
- A segmentation fault is SIGNALLED, whoever's fault it is: tileiras, rustc or the candidate. The stage that
  ran the child knows and says so in its reply.
- A box that is gone is GONE: not failed, not finished.
A wrong guess here either charges an attempt for a full disk or retries a broken candidate for ever.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, assert_never

from containers.engine import BoxStatus
from farm.fault import Fault


class BoxExit(StrEnum):
    """How a box ended."""

    RUNNING = "running"  #: it has not
    FINISHED = "finished"  #: exit 0
    OOM = "oom"  #: the engine says that it ran out of memory
    NO_SPACE = "no_space"  #: the disk or its tmpfs is full
    PROCESSES = "processes"  #: it reached its limit of processes
    NOT_STARTED = "not_started"  #: its program could not be executed
    TOOLCHAIN = "toolchain"  #: a part of the toolchain or the system is missing
    KILLED = "killed"  #: SIGKILL or SIGTERM from outside
    SIGNALLED = "signalled"  #: another signal
    ERROR = "error"  #: its program ended with an error
    GONE = "gone"  #: the engine does not know it


#: Ends after which the box leaves no more to wait for, and no result is to be expected.
BROKEN = frozenset(BoxExit) - {BoxExit.RUNNING, BoxExit.FINISHED}


class Signature(NamedTuple):
    """A phrase that means something in a log."""

    pattern: str  #: regular expression, searched in the log's end
    exit: BoxExit  #: what it means
    summary: str  #: one sentence
    next_step: str  #: what a person should do


#: First match wins. Every phrase is what the failing tool itself prints.
SIGNATURES = (
    Signature(
        r"No space left on device|\bENOSPC\b",
        BoxExit.NO_SPACE,
        "the disk or the box's /tmp was full",
        "free space in the state folder, or raise tmpfs_bytes",
    ),
    Signature(
        r"can't start new thread|fork: retry: Resource temporarily unavailable|: Cannot fork\b",
        BoxExit.PROCESSES,
        "the box reached its limit of processes",
        "look in the log for what started them; raise limits.pids if it is the compiler",
    ),
    Signature(
        r"Unable to find libclang|'stddef\.h' file not found",
        BoxExit.TOOLCHAIN,
        "clang's library or headers are missing",
        "apt install clang libclang-dev",
    ),
    Signature(
        r"linker `\w+` not found|error: linker .* not found",
        BoxExit.TOOLCHAIN,
        "the C compiler that links is missing",
        "apt install build-essential",
    ),
    Signature(
        r"error while loading shared libraries: (\S+):",
        BoxExit.TOOLCHAIN,
        "a program of the toolchain lacks a shared library",
        "run `farm toolchain install`, then `farm doctor`",
    ),
    Signature(
        r"No module named '?(containers|farm|torch|cuda)\b",
        BoxExit.TOOLCHAIN,
        "the box lacks a Python package that it must have",
        "run `farm toolchain install`, then `farm doctor`",
    ),
)

_TAIL_CHARACTERS = 20_000


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A box's end in words."""

    exit: BoxExit
    summary: str  #: one sentence
    next_step: str  #: what a person should do; empty when there is nothing to do


def classify(status: BoxStatus | None, log: str) -> Ending:
    """What `status` (None: the engine knows no such box) and the end of the log mean together."""
    if status is None:
        return Ending(
            exit=BoxExit.GONE, summary="the box is gone", next_step="it is made anew; see who removed it"
        )
    if status.running or status.exit_code is None:
        return Ending(exit=BoxExit.RUNNING, summary="the box is running", next_step="")
    code = status.exit_code
    if code == 0:
        return Ending(exit=BoxExit.FINISHED, summary="the box finished", next_step="")
    if status.oom_killed:
        return Ending(
            exit=BoxExit.OOM,
            summary="the box used all the memory it may have",
            next_step="raise limits.memory_bytes, or run fewer jobs at once",
        )
    for signature in SIGNATURES:
        if re.search(signature.pattern, log[-_TAIL_CHARACTERS:]):
            return Ending(exit=signature.exit, summary=signature.summary, next_step=signature.next_step)
    return _by_code(code)


def _by_code(code: int) -> Ending:
    if code in (125, 126, 127):
        return Ending(
            exit=BoxExit.NOT_STARTED,
            summary=f"the box's program could not be executed (exit {code})",
            next_step="run `farm doctor`; the toolchain or the image may be damaged",
        )
    if code in (137, 143):
        return Ending(
            exit=BoxExit.KILLED,
            summary=f"the box was killed from outside (signal {code - 128})",
            next_step="see who stopped it, or whether the machine was short of memory (dmesg)",
        )
    if 128 < code <= 128 + 64:
        return Ending(
            exit=BoxExit.SIGNALLED,
            summary=f"the box's program died of signal {code - 128}",
            next_step="read the end of its log",
        )
    return Ending(
        exit=BoxExit.ERROR,
        summary=f"the box's program ended with {code}",
        next_step="read the end of its log",
    )


def fault_of(exit_kind: BoxExit) -> Fault:
    """What a box that ended so, without a result, is charged to. Raises ValueError for a running one."""
    match exit_kind:
        case BoxExit.RUNNING:
            raise ValueError("a running box is charged to nobody")
        case BoxExit.OOM | BoxExit.PROCESSES | BoxExit.TOOLCHAIN | BoxExit.NOT_STARTED:
            return Fault.ENV
        case (
            BoxExit.NO_SPACE | BoxExit.KILLED | BoxExit.GONE | BoxExit.FINISHED | BoxExit.SIGNALLED | BoxExit.ERROR
        ):
            return Fault.INFRA
        case _:
            assert_never(exit_kind)

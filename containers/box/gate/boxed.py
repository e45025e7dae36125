"""The runner inside a box: signs of life for the worker that looks at it, and a file that ends its work."""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from containers.box.files import write_json
from farm.errors import UsageError

#: Written last: nothing of the results changes after it.
ENDED = "ended.json"
HEARTBEAT = "heartbeat"
BEAT_S = 5.0


@dataclass(frozen=True, kw_only=True)
class RunEnded:
    """ended.json."""

    exit_code: int  #: of the runner: 0 all ran, 1 something did not


def facts(given: Sequence[str]) -> dict[str, str]:
    """The `NAME=TEXT`s of the command line. Raises UsageError."""
    pairs = [text.partition("=") for text in given]
    wrong = [name for name, equals, _ in pairs if not (name and equals)]
    if wrong:
        raise UsageError(f"--box {wrong[0]!r} is not NAME=TEXT")
    return {name: text for name, _, text in pairs}


def watched(out: Path, work: Callable[[], int]) -> int:
    """Do the work with a heartbeat beside it, and write its end; its exit code.

    Parts have limits of their own: the beat says that the runner lives, not that a part moves on.
    """
    out.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(out / HEARTBEAT, stop), daemon=True)
    thread.start()
    try:
        code = work()
    finally:
        stop.set()
        thread.join()
    write_json(out / ENDED, RunEnded(exit_code=code))
    return code


def _beat(file: Path, stop: threading.Event) -> None:
    while True:
        with suppress(OSError):  # a full disk shows where something is written that counts
            file.touch()
            os.utime(file)
        if stop.wait(BEAT_S):
            return

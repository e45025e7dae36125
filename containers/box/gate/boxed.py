"""The runner inside a box: signs of life for the worker that looks at it, and a file that ends its work."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.box.files import write_json
from containers.box.heartbeat import Heartbeat
from farm.errors import UsageError

#: Written last: nothing of the results changes after it.
ENDED = "ended.json"
HEARTBEAT = "heartbeat"


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
    with Heartbeat(out / HEARTBEAT):
        code = work()
    write_json(out / ENDED, RunEnded(exit_code=code))
    return code

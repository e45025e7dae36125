"""What a person asks for, and the op list it means in a given target repo."""

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from farm.errors import UnknownOp, UsageError
from farm.job import Accept
from farm.op import Op

#: `--ops` words that stand for a set of ops.
ALL = "all"
MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class SubmitRequest:
    """`farm submit` as it was written."""

    ops: str  #: `all`, `missing`, or names with commas between them
    repo: str  #: URL, path or `builtin:NAME`
    base: str | None  #: branch, tag or commit id; None: the default branch
    recipe: str
    attempts: int | None  #: None: as the recipe says
    accept: Accept
    push_to: str | None  #: None: to `repo`


def repo_from_here(text: str) -> str:
    """A repo as it is stored: a path becomes absolute here, since workers run in another folder."""
    url = "://" in text or re.match(r"[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:", text) is not None
    if not text or text.startswith("builtin:") or url:
        return text
    return os.path.realpath(os.path.expanduser(text))


def select_ops(wanted: str, inventory: Sequence[Op]) -> tuple[Op, ...]:
    """The ops meant by `--ops`, in the inventory's order.

    Raises UnknownOp naming every unknown op with close names, UsageError when none is named.
    """
    if wanted == ALL:
        return tuple(inventory)
    if wanted == MISSING:
        return tuple(op for op in inventory if not op.landed)
    names = list(dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip()))
    if not names:
        raise UsageError("--ops names no op; give all, missing, or names with commas between them")
    known = {op.name: op for op in inventory}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownOp("; ".join(_unknown(name, list(known)) for name in unknown) + "; `farm ops` lists all")
    return tuple(op for op in inventory if op.name in names)


def _unknown(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f", did you mean {' or '.join(close)}?" if close else ""
    return f"the target repo has no op {name!r}{hint}"


def look_command(target: str, branch: str) -> str:
    """A command that shows the branch's commit in the repository that it was pushed to."""
    if "://" in target or ("@" in target and ":" in target):
        return f"git fetch {target} {branch} && git show FETCH_HEAD"
    return f"git -C {target} show {branch}"

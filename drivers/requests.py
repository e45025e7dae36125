"""What a person asks for, and the op list it means in a given target repo."""

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from farm.errors import RepositoryError, UnknownOp, UsageError
from farm.job import Accept
from farm.op import Op
from farm.pipeline.stage import ExecutorKind

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
    executors: ExecutorKind | None = None  #: of every stage; None: as the recipe says
    budget: str | None = None  #: most that its model calls may cost, US dollars; None: no limit of its own


def budget_micro_usd(text: str) -> int:
    """An amount of dollars as millionths. Raises UsageError."""
    from farm.models import micro_usd  # loads pydantic, which most commands do without

    try:
        amount = Decimal(text.strip().removeprefix("$"))
        if not amount.is_finite() or amount < 0:
            raise UsageError(f"a budget is an amount of dollars from 0, not {text!r}")
        return micro_usd(amount)
    except InvalidOperation:
        raise UsageError(f"a budget is an amount of dollars like 12.50, not {text!r}") from None


def repo_from_here(text: str) -> str:
    """A repo as it is stored: a path becomes absolute here, since workers run in another folder."""
    url = "://" in text or re.match(r"[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:", text) is not None
    if not text or text.startswith("builtin:") or url:
        return text
    return os.path.realpath(os.path.expanduser(text))


def select_ops(wanted: str, inventory: Sequence[Op]) -> tuple[Op, ...]:
    """The ops meant by `--ops`, in the inventory's order.

    `all` and `missing` hold ops that cannot be read as well, unless that is all there is: each gets a job, which
    fails at once and says why. Raises UnknownOp naming every unknown op with close names, RepositoryError with
    the places when a named op cannot be read, UsageError when none is named.
    """
    if wanted in (ALL, MISSING):
        chosen = tuple(op for op in inventory if wanted == ALL or not op.landed)
        if chosen and all(op.problems for op in chosen):
            raise RepositoryError("\n".join(unreadable(op) for op in chosen))
        return chosen
    names = list(dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip()))
    if not names:
        raise UsageError("--ops names no op; give all, missing, or names with commas between them")
    known = {op.name: op for op in inventory}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownOp("; ".join(_unknown(name, list(known)) for name in unknown) + "; `farm ops` lists all")
    unread = [known[name] for name in names if known[name].problems]
    if unread:
        raise RepositoryError("\n".join(unreadable(op) for op in unread))
    return tuple(op for op in inventory if op.name in names)


def unreadable(op: Op) -> str:
    """Why an op cannot be converted: a line for each place."""
    return "\n".join(f"op {op.name!r} cannot be read: {problem}" for problem in op.problems)


def _unknown(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f", did you mean {' or '.join(close)}?" if close else ""
    return f"the target repo has no op {name!r}{hint}"


def look_command(target: str, branch: str) -> str:
    """A command that shows the branch's commit in the repository that it was pushed to."""
    if "://" in target or ("@" in target and ":" in target):
        return f"git fetch {target} {branch} && git show FETCH_HEAD"
    return f"git -C {target} show {branch}"

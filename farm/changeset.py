"""The change set: which paths a patch may touch, and in which way."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.patch import Change, Patch
from farm.tree import Mode


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One path of a patch that the change set does not allow."""

    path: str
    reason: str  #: what is wrong with it, for a trace


def check(patch: Patch, allowed: Sequence[str]) -> tuple[Violation, ...]:
    """Everything in a patch that the change set `allowed` (exact paths) forbids; empty: it keeps to it."""
    found = []
    for change in patch.changes:
        reason = _reason(change, frozenset(allowed))
        if reason is not None:
            found.append(Violation(path=change.path, reason=reason))
    return tuple(found)


def _reason(change: Change, allowed: frozenset[str]) -> str | None:
    if change.path not in allowed:
        return "is not in the change set"
    if change.after is None:
        return "is deleted; a conversion adds and edits"
    if change.after.mode is Mode.LINK:
        return "becomes a link; a change set holds plain files"
    if change.after.mode is Mode.EXECUTABLE and (
        change.before is None or change.before.mode is not Mode.EXECUTABLE
    ):
        return "becomes executable; a change set holds plain files"
    return None

"""A patch: the difference of two trees, as bytes that are the same wherever they are made.

Serialised form: a line with the format's name, a line with the header's length in bytes, the header
(JSON: path, before, after of each change), then each distinct new content once, in the header's order.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.codec import CodecError, decode, encode
from farm.errors import PatchConflict, PatchRefused
from farm.paths import parents, path_bytes
from farm.tree import Entry, Mode, Tree, link_problem, ordered, problems, sha256

_MAGIC = b"tilefarm-patch 1\n"


@dataclass(frozen=True, kw_only=True)
class Side:
    """What an entry is or was, without its bytes."""

    mode: Mode
    sha256: str  #: of the content, or of a link's target
    size: int  #: bytes

    @staticmethod
    def of(entry: Entry | None) -> "Side | None":
        """The side that an entry makes; None for no entry."""
        if entry is None:
            return None
        return Side(mode=entry.mode, sha256=sha256(entry.data), size=len(entry.data))


@dataclass(frozen=True, kw_only=True)
class Change:
    """One path that differs. A rename is a deletion and an addition."""

    path: str
    before: Side | None  #: None: added
    after: Entry | None  #: None: deleted


@dataclass(frozen=True, kw_only=True)
class Patch:
    """Changes in the order of their paths' bytes, each path once."""

    changes: tuple[Change, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The touched paths."""
        return tuple(change.path for change in self.changes)

    @property
    def digest(self) -> str:
        """Hexadecimal sha256 of the serialised form."""
        return sha256(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The serialised form: equal patches give equal bytes."""
        rows = []
        blobs: dict[str, bytes] = {}
        for change in self.changes:
            after = Side.of(change.after)
            if after is not None and change.after is not None:
                blobs.setdefault(after.sha256, change.after.data)
            rows.append(_Row(path=change.path, before=change.before, after=after))
        header = json.dumps(encode(rows), sort_keys=True, separators=(",", ":")).encode("ascii")
        return b"".join((_MAGIC, b"%d\n" % len(header), header, *blobs.values()))

    @staticmethod
    def from_bytes(data: bytes) -> "Patch":
        """The patch that bytes describe. Raises PatchRefused when they are not exactly one patch."""
        try:
            return Patch(changes=tuple(_parse(data)))
        except (CodecError, ValueError) as error:
            raise PatchRefused(f"not a patch: {error}") from error


@dataclass(frozen=True, kw_only=True)
class _Row:
    path: str
    before: Side | None
    after: Side | None


def _parse(data: bytes) -> list[Change]:
    if not data.startswith(_MAGIC):
        raise ValueError("it does not begin with the format's name")
    length, _, rest = data[len(_MAGIC) :].partition(b"\n")
    if not length.isdigit() or len(length) > 12:
        raise ValueError("the header has no length")
    rows: list[Any] = json.loads(rest[: int(length)])
    at = int(length)
    blobs: dict[str, bytes] = {}
    changes: list[Change] = []
    for item in rows:
        row = decode(_Row, item)
        after = None
        if row.after is not None:
            if row.after.sha256 not in blobs:
                blobs[row.after.sha256] = rest[at : at + row.after.size]
                at += row.after.size
            after = Entry(row.after.mode, blobs[row.after.sha256])
            if Side.of(after) != row.after:
                raise ValueError(f"{row.path!r}: the content does not have its digest")
        if Side.of(after) == row.before:
            raise ValueError(f"{row.path!r}: nothing changes")
        if changes and path_bytes(changes[-1].path) >= path_bytes(row.path):
            raise ValueError(f"{row.path!r}: not in order")
        changes.append(Change(path=row.path, before=row.before, after=after))
    if at != len(rest):
        raise ValueError("bytes are left over")
    return changes


def make_patch(before: Tree, after: Tree) -> Patch:
    """The difference that takes one tree to another."""
    changes = []
    for path in ordered(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            changes.append(Change(path=path, before=Side.of(old), after=new))
    return Patch(changes=tuple(changes))


def apply_patch(tree: Tree, patch: Patch) -> dict[str, Entry]:
    """The tree with the patch applied, all of it or nothing.

    Raises PatchConflict when a touched path is not what the patch was made from, or when a file would lie
    below another; PatchRefused when the result holds what no tree may hold.
    """
    result = dict(tree)
    for change in patch.changes:
        found = Side.of(tree.get(change.path))
        if found != change.before:
            raise PatchConflict(f"{change.path!r}: {_conflict(change.before, found)}; nothing was applied")
        if change.after is None:
            del result[change.path]
        else:
            result[change.path] = change.after
    added = [change.path for change in patch.changes if change.after is not None]
    above = {parent: path for path in result for parent in parents(path)}
    for path in added:
        if path in above:
            raise PatchConflict(f"{path!r}: {above[path]!r} lies below it; nothing was applied")
        blocking = next((parent for parent in parents(path) if parent in result), None)
        if blocking is not None:
            raise PatchConflict(f"{path!r}: {blocking!r} is not a folder; nothing was applied")
    _refuse_new_problems(tree, result, added)
    return result


def _refuse_new_problems(tree: Tree, result: Tree, added: list[str]) -> None:
    links = {path: entry for path, entry in result.items() if entry.mode is Mode.LINK}
    for path in links.keys() - set(added):
        reason = link_problem(result, path)
        if reason is not None and reason != link_problem(tree, path):
            raise PatchRefused(f"{path!r}: {reason}; nothing was applied")
    fresh = {path: result[path] for path in added}
    for problem in problems({**links, **fresh}):
        if problem.path in fresh:
            raise PatchRefused(f"{problem.path!r}: {problem.reason}; nothing was applied")


def _conflict(wanted: Side | None, found: Side | None) -> str:
    if wanted is None:
        return "it is there already"
    if found is None:
        return "it is not there"
    if wanted.mode is not found.mode:
        return f"its mode is {found.mode}, the patch was made from {wanted.mode}"
    return f"its content is {found.sha256[:12]}, the patch was made from {wanted.sha256[:12]}"


def render(patch: Patch, before: Tree, *, context: int = 3) -> str:
    """The patch as a unified diff for people; contents that are not UTF-8 text are named by digest."""
    return "".join(_render_change(change, before, context) for change in patch.changes)


def _render_change(change: Change, before: Mapping[str, Entry], context: int) -> str:
    path = _shown(change.path)
    head = [f"diff {path}\n"]
    old, new = before.get(change.path), change.after
    if old is None and new is not None:
        head.append(f"new {new.mode.name.lower()} mode {new.mode}\n")
    elif new is None:
        head.append(f"deleted {'entry' if old is None else old.mode.name.lower()}\n")
    elif old is not None and old.mode is not new.mode:
        head.append(f"mode {old.mode} -> {new.mode}\n")
    texts = [_text(old), _text(new)]
    if None in texts:
        sides = [change.before, Side.of(new)]
        was, now = ("none" if side is None else f"{side.size} bytes sha256 {side.sha256}" for side in sides)
        return "".join((*head, f"binary: {was} -> {now}\n"))
    labels = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
    was_lines, now_lines = (_lines(text or "") for text in texts)
    lines = difflib.unified_diff(was_lines, now_lines, *labels, n=context)
    return "".join((*head, *lines))


def _text(entry: Entry | None) -> str | None:
    if entry is None:
        return ""
    try:
        text = entry.data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _lines(text: str) -> list[str]:
    lines = [line.replace("\r", "\\r") + "\n" for line in text.split("\n")]
    if lines[-1] == "\n":
        lines.pop()
    else:
        lines[-1] += "\\ no newline at the end\n"
    return lines


def _shown(path: str) -> str:
    plain = path.isprintable() and not any(c in path for c in '"\\')
    return path if plain else json.dumps(path)

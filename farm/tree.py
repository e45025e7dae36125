"""A tree of files as values: paths to modes and bytes, as git sees them."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from farm.errors import PatchRefused
from farm.paths import is_disguise, parents, path_bytes, path_problem


class Mode(StrEnum):
    """The three kinds of entries a tree may hold, as git writes them."""

    FILE = "100644"  #: a plain file
    EXECUTABLE = "100755"  #: a plain file that may be executed
    LINK = "120000"  #: a symbolic link; data is its target


@dataclass(frozen=True)
class Entry:
    """One file or link."""

    mode: Mode
    data: bytes


#: Paths use `/`, are relative, and carry undecodable bytes as surrogate escapes.
Tree = Mapping[str, Entry]

#: Links that may be followed one after another before a path counts as a circle.
_MAX_LINKS = 40


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a tree may not hold an entry."""

    path: str
    reason: str


def sha256(data: bytes) -> str:
    """Hexadecimal sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def ordered(paths: Iterable[str]) -> list[str]:
    """Paths in the one order that everything serialised here uses: by their bytes."""
    return sorted(paths, key=path_bytes)


def tree_digest(tree: Tree) -> str:
    """Hexadecimal sha256 over paths, modes and bytes of a tree."""
    total = hashlib.sha256()
    for path in ordered(tree):
        entry = tree[path]
        total.update(b"%s %s\0%s\n" % (entry.mode.encode(), sha256(entry.data).encode(), path_bytes(path)))
    return total.hexdigest()


def problems(tree: Tree) -> tuple[Problem, ...]:
    """Everything in a tree that no checkout could or should hold, in the order of its paths."""
    found = []
    for path in ordered(tree):
        entry = tree[path]
        reason = path_problem(path)
        if reason is None and any(parent in tree for parent in parents(path)):
            reason = "a path below a file or link"
        if reason is None and entry.mode is Mode.LINK:
            reason = link_problem(tree, path)
        if reason is not None:
            found.append(Problem(path=path, reason=reason))
    return tuple(found)


def link_problem(tree: Tree, path: str) -> str | None:
    """Why the link at `path` may not be carried, or None; links on its way are followed in the tree."""
    if any(is_disguise(path.rsplit("/", 1)[-1], name) for name in (".git", ".gitmodules")):
        return "a link in place of a git file"
    pending = _parts(tree[path].data)
    if pending is None:
        return "a link leads outside the tree"
    place = path.split("/")[:-1]
    followed = 0
    while pending:
        part = pending.pop(0)
        if part == "..":
            if not place:
                return "a link leads outside the tree"
            place.pop()
            continue
        if is_disguise(part, ".git"):
            return "a link leads into .git"
        place.append(part)
        entry = tree.get("/".join(place))
        if entry is not None and entry.mode is Mode.LINK:
            target = _parts(entry.data)
            followed += 1
            if target is None:
                return "a link leads outside the tree"
            if followed > _MAX_LINKS:
                return "a link leads in a circle"
            place.pop()
            pending = target + pending
    return None


def _parts(target: bytes) -> list[str] | None:
    if not target or target.startswith(b"/") or b"\0" in target:
        return None
    text = target.decode("utf-8", "surrogateescape")
    return [part for part in text.split("/") if part not in ("", ".")]


def write_tree(tree: Tree, folder: Path) -> None:
    """Write a tree into a folder that is new or empty and that nobody else writes to.

    Files get mode 644 or 755 whatever the umask is. Raises PatchRefused, before anything is written,
    for a tree whose paths no checkout may hold.
    """
    for path, entry in tree.items():
        reason = path_problem(path)
        if reason is None and any(parent in tree for parent in parents(path)):
            reason = "a path below a file or link"
        if reason is not None:
            raise PatchRefused(f"{path!r}: {reason} ({entry.mode.name.lower()})")
    folder.mkdir(parents=True, exist_ok=True)
    root = os.fsencode(folder)
    made: set[str] = set()
    for path in ordered(tree):
        for parent in parents(path):
            if parent not in made:
                os.makedirs(os.path.join(root, path_bytes(parent)), exist_ok=True)
                made.add(parent)
    for path, entry in tree.items():
        place = os.path.join(root, path_bytes(path))
        if entry.mode is Mode.LINK:
            os.symlink(entry.data, place)
            continue
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(entry.data)
            os.fchmod(file.fileno(), 0o755 if entry.mode is Mode.EXECUTABLE else 0o644)

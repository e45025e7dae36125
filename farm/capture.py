"""Reads the folder that a box wrote, as if it was written by an enemy: no git, no link followed."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from farm.errors import PatchRefused
from farm.paths import path_problem
from farm.tree import Entry, Mode, Tree, problems

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class CaptureLimits:
    """How much a folder may hold."""

    total_bytes: int = 512 << 20  #: all files together
    file_bytes: int = 128 << 20  #: one file
    entries: int = 100_000  #: files, links and folders together
    depth: int = 64  #: folders inside one another


@dataclass(kw_only=True)
class _Capture:
    limits: CaptureLimits
    tree: dict[str, Entry] = field(default_factory=dict)
    entries: int = 0
    bytes: int = 0


def read_tree(folder: Path, *, limits: CaptureLimits | None = None, known: Tree | None = None) -> Tree:
    """The files and links below a folder; `.git` at its root and of nested repositories is left out.

    Modes are git's: executable for the owner or not. `known` is the tree that the folder began as: a link
    that it already had may lead anywhere. Raises PatchRefused, naming path and reason, for anything that a
    patch may not carry: links that lead outside, what is not a file, folder or link, set-id and sticky
    bits, disguises of `.git`, more or larger files than the limits.
    """
    capture = _Capture(limits=limits or CaptureLimits())
    with _opened(folder, None, "") as root:
        _read_folder(capture, root, "", 0)
    for problem in problems(capture.tree):
        if known is None or known.get(problem.path) != capture.tree[problem.path]:
            raise refused(problem.path, problem.reason)
    return capture.tree


def refused(path: str, reason: str) -> PatchRefused:
    """The refusal of one path."""
    return PatchRefused(f"{path!r}: {reason}; nothing was applied")


@contextmanager
def _opened(name: str | Path, above: int | None, path: str) -> Iterator[int]:
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=above)
    except OSError as error:
        raise refused(path, f"cannot be opened as a folder ({error.strerror})") from error
    try:
        yield fd
    finally:
        os.close(fd)


def _read_folder(capture: _Capture, fd: int, prefix: str, depth: int) -> None:
    if depth > capture.limits.depth:
        raise refused(prefix, f"folders nested more than {capture.limits.depth} deep")
    with os.scandir(fd) as listing:
        names = []
        for item in listing:
            capture.entries += 1
            if capture.entries > capture.limits.entries:
                raise refused(prefix + item.name, f"more than {capture.limits.entries} entries")
            names.append(item.name)
    for name in sorted(names):
        _read_entry(capture, fd, name, prefix + name, depth)


def _read_entry(capture: _Capture, fd: int, name: str, path: str, depth: int) -> None:
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        raise refused(path, f"cannot be read ({error.strerror})") from error
    if name == ".git" and (depth == 0 or stat.S_ISDIR(status.st_mode)):
        return
    reason = path_problem(path)
    if reason is not None:
        raise refused(path, reason)
    if stat.S_ISDIR(status.st_mode):
        with _opened(name, fd, path) as inner:
            _read_folder(capture, inner, path + "/", depth + 1)
    elif stat.S_ISLNK(status.st_mode):
        capture.tree[path] = Entry(Mode.LINK, os.fsencode(os.readlink(name, dir_fd=fd)))
    elif stat.S_ISREG(status.st_mode):
        capture.tree[path] = _read_file(capture, fd, name, path)
    else:
        raise refused(path, "not a file, folder or link")


def _read_file(capture: _Capture, above: int, name: str, path: str) -> Entry:
    limits = capture.limits
    try:
        fd = os.open(name, _PLAIN, dir_fd=above)
    except OSError as error:
        raise refused(path, f"cannot be read ({error.strerror})") from error
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise refused(path, "not a file, folder or link")
        if status.st_mode & 0o7000:
            raise refused(path, "a mode beyond 755")
        room = min(limits.file_bytes, limits.total_bytes - capture.bytes)
        data = b"" if status.st_size > room else file.read(room + 1)
        if status.st_size > room or len(data) > room:
            raise refused(
                path, f"too large: more than {limits.file_bytes} bytes, or {limits.total_bytes} in all files"
            )
    capture.bytes += len(data)
    return Entry(Mode.EXECUTABLE if status.st_mode & 0o100 else Mode.FILE, data)

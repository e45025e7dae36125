"""What an immutable mount holds, indexed once per content: a job only asks.

An index is a folder: `runs` and `digests` (sorted 64-bit numbers: a fingerprint and the number of the file
that has it), `names` (a Bloom filter over the names in text and in libraries; a hit is proven by reading the
files), `files.json` (paths, read only after a hit) and `place.json`.
"""

import bisect
import fcntl
import json
import mmap
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.archives import members
from farm.codec import decode
from farm.leak import Answer, Leak, ScannedPlace, copied_text, names, same_bytes
from farm.mountbuild import (
    FILE_BITS,
    FILE_MASK,
    FORMAT,
    SEARCHED_BYTES,
    Builder,
    Earlier,
    IndexMeta,
    key_of,
    probes,
    read_files,
)
from farm.shingles import digest64
from farm.tree import sha256

#: Most bytes of a Bloom filter; smaller mounts get about a bit for each byte of content.
_MOST_FILTER_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder that every box can read and none can write."""

    name: str  #: for reports, e.g. `cargo registry`
    folder: Path
    without: tuple[Path, ...] = ()  #: folders below it that boxes see empty


def _walk(mount: Mount) -> Iterator[tuple[str, os.stat_result]]:
    """Every file of a mount that a box sees, in a fixed order; links are not followed."""
    folder = mount.folder.resolve()
    masked = {f"{path.resolve().relative_to(folder)}/" for path in mount.without}
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(folder / prefix) as listing:
            items = sorted(listing, key=lambda item: item.name)
        for item in items:
            if item.is_dir(follow_symlinks=False):
                if f"{prefix}{item.name}/" not in masked:
                    pending.append(f"{prefix}{item.name}/")
            else:
                yield f"{prefix}{item.name}", item.stat(follow_symlinks=False)


def fingerprint(mount: Mount) -> str:
    """What tells an unchanged mount from a changed one without reading it: names, sizes, times, inodes."""
    rows = [_row(path, status) for path, status in _walk(mount)]
    return sha256("\n".join(rows).encode("utf-8", "surrogateescape"))


def _row(path: str, s: os.stat_result) -> str:
    return f"{path}\0{s.st_mode} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}"


def _state(path: str, status: os.stat_result) -> str:
    return sha256(_row(path, status).encode("utf-8", "surrogateescape"))[:24]


class MountIndex:
    """An opened index."""

    def __init__(self, folder: Path, mount: Mount) -> None:
        self._mount = mount
        self._folder = folder
        self._meta = decode(IndexMeta, json.loads(folder.joinpath("place.json").read_text()))

    @property
    def place(self) -> ScannedPlace:
        """What was indexed."""
        return self._meta.place

    def leaks(self, answer: Answer) -> tuple[Leak, ...]:
        """Leaks in the mount. A name that the base uses for itself says nothing here."""
        keys = {key_of(digest) >> FILE_BITS: digest for digest in answer.blobs}
        equal = self._files_with("digests", keys)
        alike = self._files_with("runs", answer.all_runs)
        files = read_files(self._folder) if equal or alike else []
        leaks: list[Leak] = []
        told: set[str] = set()
        for number in sorted(equal):
            file = files[number]
            if file.sha256 not in told:
                leaks += same_bytes(answer, self._mount.name, file.path, file.sha256)
            told.add(file.sha256)
        for number, runs in alike.items():
            leaks += copied_text(answer, self._mount.name, files[number].path, frozenset(runs))
        return (*leaks, *self._named(answer))

    def _files_with(self, table: str, wanted: Iterable[int]) -> dict[int, set[int]]:
        """Numbers of the files that a table has under the wanted keys, with those keys."""
        found: dict[int, set[int]] = {}
        path = self._folder / table
        if path.stat().st_size == 0:
            return found
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            keys = _Numbers(raw)
            for key in wanted:
                at = bisect.bisect_left(keys, key << FILE_BITS)
                while at < len(keys) and keys[at] >> FILE_BITS == key:
                    found.setdefault(keys[at] & FILE_MASK, set()).add(key)
                    at += 1
        return found

    def _named(self, answer: Answer) -> Iterator[Leak]:
        with self._folder.joinpath("names").open("rb") as file:
            hit = [name for name in answer.secret if self._maybe(file.fileno(), name.encode())]
        if not hit:
            return
        for path, data in _contents(self._mount):
            if any(name.encode() in data for name in hit):
                yield from names(answer, self._mount.name, path, data)[0]

    def _maybe(self, fd: int, name: bytes) -> bool:
        wanted = probes(digest64(name), self._meta.bits)
        return all(os.pread(fd, 1, bit >> 3)[0] >> (bit & 7) & 1 for bit in wanted)


class _Numbers(Sequence[int]):
    """Sorted little-endian 64-bit numbers in a mapped file."""

    def __init__(self, raw: mmap.mmap) -> None:
        self._raw = raw

    def __len__(self) -> int:
        return len(self._raw) // 8

    def __getitem__(self, at: int) -> int:  # type: ignore[override]  # bisect asks for single items only
        return int.from_bytes(self._raw[at * 8 : at * 8 + 8], "little")


def _contents(mount: Mount) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    for path, status in _walk(mount):
        if stat.S_ISREG(status.st_mode) and status.st_size <= SEARCHED_BYTES:
            data = (mount.folder / path).read_bytes()
            for name, content in ((path, data), *_nested(path, data)):
                digest = sha256(content)
                if digest not in seen:
                    seen.add(digest)
                    yield name, content


def _nested(path: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    for name, content in members(path, data, SEARCHED_BYTES):
        yield f"{path}!{name}", content
        yield from _nested(f"{path}!{name}", content)


def open_index(mount: Mount, cache: Path) -> MountIndex:
    """The index of a mount, built first when its folder has changed since the last time.

    Safe for many processes: one builds, the others wait. Indexes of earlier contents are removed.
    """
    folder = mount.folder.resolve()
    resolved = Mount(name=mount.name, folder=folder, without=mount.without)
    home = cache / sha256(f"{FORMAT}\0{mount.name}\0{folder}".encode("utf-8", "surrogateescape"))[:16]
    ready = home / fingerprint(mount)
    if not ready.joinpath("place.json").exists():
        home.mkdir(parents=True, exist_ok=True)
        with home.joinpath("lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not ready.joinpath("place.json").exists():
                _build(resolved, home, ready)
    return MountIndex(ready, resolved)


def _build(mount: Mount, home: Path, ready: Path) -> None:
    content_bytes = sum(status.st_size for _, status in _walk(mount))
    filter_bytes = min(_MOST_FILTER_BYTES, 1 << max(16, (content_bytes // 8).bit_length()))
    earlier = next((path.parent for path in home.glob("*/place.json")), None)
    builder = Builder(Earlier(earlier), filter_bytes)
    for path, status in _walk(mount):
        if stat.S_ISREG(status.st_mode):
            builder.take(mount.folder, path, status.st_size, _state(path, status))
    new = Path(tempfile.mkdtemp(prefix="new-", dir=home))
    builder.save(new, mount.name)
    for old in home.iterdir():
        if old.is_dir() and old not in (new, ready):
            shutil.rmtree(old)
    new.rename(ready)

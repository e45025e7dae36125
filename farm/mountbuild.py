"""Builds the index of a mount: one file after another, with what an earlier index knows already."""

import array
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from farm.archives import members
from farm.codec import encode
from farm.leak import ScannedPlace
from farm.shingles import RUN_BITS, Fingerprinter, digest64, is_binary, tokens_of, words
from farm.tree import sha256

#: Larger files are only counted: no hidden file and no library of one op is this large.
SEARCHED_BYTES = 64 << 20
#: Larger texts give names but no runs.
TEXT_BYTES = 4 << 20
#: Nor do these: half of a toolchain's text, in languages that no target implementation is written in.
NAMES_ONLY = (".h", ".hpp", ".hxx", ".inl", ".c", ".cc", ".cpp", ".cxx", ".html", ".js", ".css", ".svg")
FILE_BITS = 64 - RUN_BITS
FILE_MASK = (1 << FILE_BITS) - 1
_REMEMBERED = 500_000


#: Changes with what an index means, so that no code reads one that other code has written.
FORMAT = 1


class IndexedFile(NamedTuple):
    """A file of a mount, or a member of an archive in it: a row of files.json."""

    path: str
    sha256: str
    size: int  #: bytes
    state: str  #: tells whether the file, or the one it lies in, has changed
    opened: bool  #: False: another file had the same content, and only that one was looked into


@dataclass(frozen=True, kw_only=True)
class IndexMeta:
    """place.json, written last."""

    place: ScannedPlace
    bits: int  #: of the Bloom filter


def read_files(folder: Path) -> list[IndexedFile]:
    """The files of an index; a file's number is its position."""
    return [IndexedFile(*row) for row in json.loads(folder.joinpath("files.json").read_text())]


class Earlier:
    """The index of an earlier content: what it knows about files that have not changed since."""

    def __init__(self, folder: Path | None) -> None:
        self.names = b"" if folder is None else folder.joinpath("names").read_bytes()
        self._runs: dict[str, array.array[int]] = {}
        self._files: dict[tuple[str, str], list[IndexedFile]] = {}
        if folder is None:
            return
        files = read_files(folder)
        for file in files:
            self._files.setdefault((file.path.split("!")[0], file.state), []).append(file)
        for number in _numbers(folder.joinpath("runs").read_bytes()):
            digest = files[number & FILE_MASK].sha256
            self._runs.setdefault(digest, array.array("Q")).append(number >> FILE_BITS)

    def files(self, path: str, state: str) -> list[IndexedFile]:
        """The file with its members, or nothing when it is new or has changed."""
        return self._files.get((path, state), [])

    def runs(self, digest: str) -> Iterable[int]:
        """The runs of a content."""
        return self._runs.get(digest, ())


class Builder:
    """Collects what an index holds, file by file."""

    def __init__(self, earlier: Earlier, filter_bytes: int) -> None:
        self._earlier = earlier if len(earlier.names) == filter_bytes else Earlier(None)
        self._names = bytearray(self._earlier.names or filter_bytes)
        self._noted: set[bytes] = set()  # some of the names that the filter has
        self._fingerprinter = Fingerprinter()
        self._files: list[IndexedFile] = []
        self._seen: set[str] = set()
        self._runs = array.array("Q")
        self._large: list[tuple[str, int]] = []

    def take(self, folder: Path, path: str, size: int, state: str) -> None:
        """Take in one file, reading it only when the earlier index does not know it in this state."""
        if size > SEARCHED_BYTES:
            self._large.append((path, size))
            return
        known = self._earlier.files(path, state)
        inside = {file.sha256 for file in known if file.opened}
        if not known or any(f.sha256 not in inside and f.sha256 not in self._seen for f in known):
            self._read(path, (folder / path).read_bytes(), state)
            return
        for file in known:
            if self._enter(file):
                self._keep(self._earlier.runs(file.sha256))

    def _read(self, path: str, data: bytes, state: str) -> None:
        digest = sha256(data)
        opened = digest not in self._seen
        file = IndexedFile(path=path, sha256=digest, size=len(data), state=state, opened=opened)
        if not self._enter(file):
            return
        tokens = [] if is_binary(data) else tokens_of(data)
        self._note(words(data, tokens))
        if len(data) <= TEXT_BYTES and not path.endswith(NAMES_ONLY):
            self._keep(self._fingerprinter.runs_of(tokens))
        for name, content in members(path, data, SEARCHED_BYTES):
            self._read(f"{path}!{name}", content, state)

    def _enter(self, file: IndexedFile) -> bool:
        """Give a file its number; whether its content is new."""
        new = file.sha256 not in self._seen
        self._seen.add(file.sha256)
        self._files.append(file)
        return new

    def _keep(self, runs: Iterable[int]) -> None:
        number = len(self._files) - 1
        self._runs.extend(run << FILE_BITS | number for run in runs)

    def _note(self, found: set[bytes]) -> None:
        bloom, bits = self._names, len(self._names) * 8
        for word in found - self._noted:
            for bit in probes(digest64(word), bits):
                bloom[bit >> 3] |= 1 << (bit & 7)
        if len(self._noted) > _REMEMBERED:
            self._noted.clear()
        self._noted |= found

    def save(self, folder: Path, name: str) -> None:
        """Write the index."""
        rows = [f"{file.path!r} {file.sha256}" for file in self._files]
        rows += [f"{path!r} {size} bytes" for path, size in self._large]
        place = ScannedPlace(
            name=name,
            digest=sha256("\n".join(rows).encode()),
            files=len(self._files) + len(self._large),
            bytes=sum(file.size for file in self._files) + sum(size for _, size in self._large),
            unsearched=len(self._large),
        )
        digests = array.array("Q", (key_of(file.sha256) | n for n, file in enumerate(self._files)))
        _write_numbers(folder / "runs", self._runs)
        _write_numbers(folder / "digests", digests)
        folder.joinpath("names").write_bytes(self._names)
        folder.joinpath("files.json").write_text(json.dumps(self._files))
        meta = IndexMeta(place=place, bits=len(self._names) * 8)
        folder.joinpath("place.json").write_text(json.dumps(encode(meta)))


def key_of(digest: str) -> int:
    """Where a sha256 stands among the digests of an index, before the file's number."""
    return int(digest[: RUN_BITS // 4], 16) << FILE_BITS


def _write_numbers(path: Path, numbers: "array.array[int]") -> None:
    ordered = array.array("Q", sorted(numbers))
    if sys.byteorder == "big":
        ordered.byteswap()
    path.write_bytes(ordered.tobytes())


def _numbers(data: bytes) -> "array.array[int]":
    numbers = array.array("Q")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def probes(number: int, bits: int) -> tuple[int, ...]:
    """The bits of a Bloom filter of `bits` bits that stand for a number."""
    step, mask = (number >> 32) | 1, bits - 1
    return (number & mask, (number + step) & mask, (number + 2 * step) & mask, (number + 3 * step) & mask)

"""The artifact store: bytes under their own sha256, in a folder of files."""

import hashlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import BinaryIO, Protocol

from farm.codec import decode, encode
from farm.errors import ArtifactMissing
from farm.paths import path_problem
from farm.tree import Entry, Mode, Tree, ordered, sha256

_CHUNK_BYTES = 1 << 20


class ArtifactStore(Protocol):
    """Where large things are kept. A digest is the hexadecimal sha256 of the bytes."""

    def put(self, data: bytes) -> str:
        """Keep bytes; their digest. Keeping the same bytes again changes nothing."""

    def put_stream(self, stream: BinaryIO) -> str:
        """Keep everything that a stream still holds; its digest."""

    def get(self, digest: str) -> bytes:
        """The bytes. Raises ArtifactMissing when they are not there or not what was kept."""

    def open(self, digest: str) -> BinaryIO:
        """The bytes as a stream, unverified. Raises ArtifactMissing when they are not there."""

    def has(self, digest: str) -> bool:
        """Whether they are there."""


class FolderStore:
    """An artifact store in a folder; many processes may write to it at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """See ArtifactStore."""
        digest = sha256(data)
        return digest if self.has(digest) else self.put_stream(io.BytesIO(data))

    def put_stream(self, stream: BinaryIO) -> str:
        """See ArtifactStore."""
        self._folder.mkdir(parents=True, exist_ok=True)
        total = hashlib.sha256()
        fd, name = tempfile.mkstemp(prefix="incoming-", dir=self._folder)
        try:
            with os.fdopen(fd, "wb") as file:
                while chunk := stream.read(_CHUNK_BYTES):
                    total.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), 0o444)
            digest = total.hexdigest()
            self._path(digest).parent.mkdir(exist_ok=True)
            os.replace(name, self._path(digest))
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        return digest

    def get(self, digest: str) -> bytes:
        """See ArtifactStore."""
        with self.open(digest) as file:
            data = file.read()
        if sha256(data) != digest:
            raise ArtifactMissing(f"artifact {digest} is damaged: {self._path(digest)}")
        return data

    def open(self, digest: str) -> BinaryIO:
        """See ArtifactStore."""
        try:
            return self._path(digest).open("rb")
        except FileNotFoundError as error:
            raise ArtifactMissing(f"artifact {digest} is not in {self._folder}") from error

    def has(self, digest: str) -> bool:
        """See ArtifactStore."""
        return self._path(digest).is_file()

    def _path(self, digest: str) -> Path:
        if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise ArtifactMissing(f"{digest!r} is not a digest")
        return self._folder / digest[:2] / digest


class MemoryStore:
    """An artifact store that lives as long as its process, for tests."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        """See ArtifactStore."""
        digest = sha256(data)
        self._kept[digest] = data
        return digest

    def put_stream(self, stream: BinaryIO) -> str:
        """See ArtifactStore."""
        return self.put(stream.read())

    def get(self, digest: str) -> bytes:
        """See ArtifactStore."""
        if digest not in self._kept:
            raise ArtifactMissing(f"artifact {digest} is not in memory")
        return self._kept[digest]

    def open(self, digest: str) -> BinaryIO:
        """See ArtifactStore."""
        return io.BytesIO(self.get(digest))

    def has(self, digest: str) -> bool:
        """See ArtifactStore."""
        return digest in self._kept


def put_tree(store: ArtifactStore, tree: Tree) -> str:
    """Keep a whole tree (a captured folder, a bare base); the digest of its list of files."""
    rows = [[path, tree[path].mode.value, store.put(tree[path].data)] for path in ordered(tree)]
    return store.put(json.dumps(encode(rows), separators=(",", ":")).encode("ascii"))


def get_tree(store: ArtifactStore, digest: str) -> dict[str, Entry]:
    """The tree that put_tree kept. Raises ArtifactMissing when a part of it is not there."""
    rows = decode(tuple[tuple[str, Mode, str], ...], json.loads(store.get(digest)))
    for path, _, _ in rows:
        reason = path_problem(path)
        if reason is not None:
            raise ArtifactMissing(f"artifact {digest} is no list of files: {path!r}: {reason}")
    return {path: Entry(mode, store.get(blob)) for path, mode, blob in rows}

"""What lies inside archives and compressed files, as far as the standard library opens them."""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

_TAR = (".crate", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_ZIP = (".whl", ".zip", ".egg", ".jar")
#: What the libraries raise for a file that only has an archive's name.
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    OSError,
    EOFError,
    zlib.error,
    RuntimeError,
    NotImplementedError,
)


def members(path: str, data: bytes, limit_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Name and content of the files in an archive, up to `limit_bytes` in all; nothing for other files."""
    name = path.lower()
    try:
        if name.endswith(_TAR):
            yield from _tar(data, limit_bytes)
        elif name.endswith(_ZIP):
            yield from _zip(data, limit_bytes)
        elif name.endswith(".gz"):
            with gzip.open(io.BytesIO(data)) as file:
                yield "content", file.read(limit_bytes)
    except _BROKEN:
        return


def _tar(data: bytes, limit_bytes: int) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            limit_bytes -= member.size
            if limit_bytes < 0:
                return
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                yield member.name, file.read()


def _zip(data: bytes, limit_bytes: int) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            limit_bytes -= info.file_size
            if limit_bytes < 0:
                return
            if not info.is_dir():
                yield info.filename, archive.read(info)

"""A results folder as one file: written on the GPU machine, opened here. Standard library alone."""

import io
import lzma
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from farm.errors import BundleRefused

#: What `pack` writes, as the end of a name; and what `unpacked` takes.
SUFFIX = ".tar.xz"
SUFFIXES = (SUFFIX, ".tar.gz", ".tgz", ".tar", ".zip")
#: An archive's files may have so many bytes together, and there may be so many of them.
MOST_BYTES, MOST_FILES = 4 << 30, 64
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, OSError, EOFError, RuntimeError)
_CHUNK = 1 << 20


class _Member(NamedTuple):
    """An entry of an archive."""

    name: str
    plain: bool  #: a file, and no link, device or other thing
    folder: bool
    size: int  #: bytes, as the archive says


def pack(folder: Path, file: Path) -> int:
    """Write the files of a results folder into an archive, in a folder of the same name; its size in bytes.

    The archive is there whole or not at all. Equal folders give equal bytes.
    """
    partial = file.with_name(f"{file.name}.partial")
    with tarfile.open(partial, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.iterdir()):
            if not path.is_file() or path.suffix == ".partial":
                continue
            data = path.read_bytes()
            info = tarfile.TarInfo(f"{folder.name}/{path.name}")
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    partial.replace(file)
    return file.stat().st_size


@contextmanager
def unpacked(results: Path, *, most_bytes: int = MOST_BYTES) -> Iterator[Path]:
    """The folder itself; or an archive's files in a temporary folder, which is gone afterwards.

    An archive holds plain files, all of them at its top or all in one folder. Raises BundleRefused naming what
    else is in it, or for one that is not whole.
    """
    if not results.is_file():
        yield results
        return
    with tempfile.TemporaryDirectory(prefix="tilefarm-results-") as made:
        folder = _Folder(results, Path(made), most_bytes)
        try:
            if results.name.lower().endswith(".zip"):
                _open_zip(folder)
            else:
                _open_tar(folder)
        except _BROKEN as error:
            kinds = ", ".join(SUFFIXES)
            raise BundleRefused(f"{results} is no whole archive ({kinds}) of results: {error}") from error
        yield Path(made)


class _Folder:
    """Takes the members of an archive one by one."""

    def __init__(self, file: Path, folder: Path, most_bytes: int) -> None:
        self.file = file
        self._folder = folder
        self._room = most_bytes
        self._within: set[str] = set()  #: folders of the archive that had files in them

    def target(self, member: _Member) -> Path | None:
        """Where a member is written; None for the folder that holds all. Raises BundleRefused."""
        parts = PurePosixPath(member.name).parts
        if ".." in parts or "/" in parts or "\\" in member.name or "\0" in member.name:
            raise BundleRefused(f"{self.file}: {member.name!r} leads out of the archive; it is not opened")
        if member.folder and len(parts) <= 1:
            return None
        if not member.plain or not 1 <= len(parts) <= 2:
            raise BundleRefused(f"{self.file}: {member.name!r} is no plain file of results; pack them anew")
        self._within.add("/".join(parts[:-1]))
        target = self._folder / parts[-1]
        if len(self._within) > 1 or target.exists():
            raise BundleRefused(f"{self.file} holds two folders or a file twice; pack one folder of results")
        if member.size > self._room or len(list(self._folder.iterdir())) >= MOST_FILES:
            raise self._too_much()
        return target

    def write(self, source: IO[bytes], target: Path) -> None:
        """Write what a member holds, which may be more than it says. Raises BundleRefused."""
        with target.open("xb") as out:
            while data := source.read(_CHUNK):
                self._room -= len(data)
                if self._room < 0:
                    raise self._too_much()
                out.write(data)

    def _too_much(self) -> BundleRefused:
        return BundleRefused(f"{self.file} holds more than results have; it is not opened")


def _open_tar(folder: _Folder) -> None:
    with tarfile.open(folder.file) as archive:
        for info in archive:
            plain = info.isreg() and not info.issparse()
            target = folder.target(_Member(info.name, plain, info.isdir(), info.size))
            source = None if target is None else archive.extractfile(info)
            if target is not None and source is not None:
                folder.write(source, target)


def _open_zip(folder: _Folder) -> None:
    with zipfile.ZipFile(folder.file) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            plain = not info.is_dir() and kind in (0, stat.S_IFREG)
            member = _Member(info.filename, plain, info.is_dir() and kind in (0, stat.S_IFDIR), info.file_size)
            target = folder.target(member)
            if target is not None:
                with archive.open(info) as source:
                    folder.write(source, target)

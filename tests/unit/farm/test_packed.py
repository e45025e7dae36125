"""Results as one file: what comes back is what was packed, and nothing leaves the archive's folder."""

import gzip
import hashlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.errors import BundleRefused
from farm.packed import pack, unpacked

FILES = {"results.json": b"{}", "rows.jsonl.gz": gzip.compress(b"row\n", mtime=0)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "r"
    made.mkdir()
    for name, data in FILES.items():
        (made / name).write_bytes(data)
    (made / "rows.jsonl.gz.partial").write_bytes(b"torn")
    return made


def contents(results: Path) -> dict[str, bytes]:
    with unpacked(results) as opened:
        return {path.name: path.read_bytes() for path in opened.iterdir()}


def tar(file: Path, *members: tarfile.TarInfo | tuple[str, bytes]) -> Path:
    with tarfile.open(file, "w:xz") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return file


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_a_packed_folder_comes_back_whole_and_equal_folders_are_equal_files(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "r.tar.xz"
    assert pack(folder, file) == file.stat().st_size
    assert contents(file) == FILES
    first = hashlib.sha256(file.read_bytes()).hexdigest()
    pack(folder, file)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == first
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")] == []


def test_a_folder_is_taken_as_it_is(folder: Path) -> None:
    with unpacked(folder) as opened:
        assert opened == folder


def test_what_was_unpacked_is_gone_afterwards(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "r.tar.xz")
    with unpacked(tmp_path / "r.tar.xz") as opened:
        assert opened.is_dir()
    assert not opened.exists()


@pytest.mark.parametrize("prefix", ["", "r/", "./"])
def test_a_zip_or_tar_of_the_files_or_of_their_folder_is_taken(prefix: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "r.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        if prefix == "r/":
            archive.mkdir("r")
        for name, data in FILES.items():
            archive.writestr(prefix + name, data)
    assert contents(tmp_path / "r.zip") == FILES
    made = [special(prefix.rstrip("/"), tarfile.DIRTYPE)] if prefix else []
    tar(tmp_path / "r.tar.xz", *made, *((prefix + name, data) for name, data in FILES.items()))
    assert contents(tmp_path / "r.tar.xz") == FILES


ESCAPES: dict[str, tuple[tarfile.TarInfo | tuple[str, bytes], str]] = {
    "a path above": (("../out", b"x"), "leads out"),
    "a path above, further in": (("r/../../out", b"x"), "leads out"),
    "an absolute path": (("/tmp/out", b"x"), "leads out"),
    "another system's path": (("..\\out", b"x"), "leads out"),
    "a link": (special("r/results.json", tarfile.SYMTYPE, "/etc/passwd"), "no plain file"),
    "a hard link": (special("r/results.json", tarfile.LNKTYPE, "r/rows.jsonl.gz"), "no plain file"),
    "a pipe": (special("r/results.json", tarfile.FIFOTYPE), "no plain file"),
    "a folder of a folder": (special("r/more", tarfile.DIRTYPE), "no plain file"),
    "a file below a folder": (("r/more/results.json", b"x"), "no plain file"),
    "another folder": (("other/results.json", b"x"), "two folders"),
    "a file twice": (("r/rows.jsonl.gz", b"x"), "a file twice"),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_an_archive_with_anything_but_results_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    member, reason = ESCAPES[name]
    file = tar(tmp_path / "r.tar.xz", ("r/rows.jsonl.gz", b"y"), member)
    with pytest.raises(BundleRefused, match=reason), unpacked(file):
        pass
    assert list(tmp_path.iterdir()) == [file]


def test_a_zip_with_a_link_or_a_path_outside_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("results.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    for member, reason in ((link, "no plain file"), ("../results.json", "leads out")):
        with zipfile.ZipFile(tmp_path / "r.zip", "w") as archive:
            archive.writestr(member, "/etc/passwd")
        with pytest.raises(BundleRefused, match=reason), unpacked(tmp_path / "r.zip"):
            pass


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


@pytest.mark.parametrize("harm", [_cut, _flipped, lambda data: b"", lambda data: b"{}"])
def test_an_archive_that_was_harmed_is_refused(
    harm: Callable[[bytes], bytes], folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "r.tar.xz"
    pack(folder, file)
    file.write_bytes(harm(file.read_bytes()))
    with pytest.raises(BundleRefused, match="no whole archive"), unpacked(file):
        pass


def test_an_archive_that_holds_more_than_results_have_is_refused(tmp_path: Path) -> None:
    file = tar(tmp_path / "r.tar.xz", ("a", b"x" * 6), ("b", b"x" * 6))
    with pytest.raises(BundleRefused, match="more than results have"), unpacked(file, most_bytes=10):
        pass
    with unpacked(file, most_bytes=12) as opened:
        assert {path.name for path in opened.iterdir()} == {"a", "b"}

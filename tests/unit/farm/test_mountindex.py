import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.archives import members
from farm.leak import Answer, LeakKind
from farm.mountbuild import SEARCHED_BYTES
from farm.mountindex import Mount, open_index
from farm.shingles import Fingerprinter
from farm.tree import sha256

_HIDDEN = b"\n".join(
    b"let %s = load_%s(&input, [row, column]).cast_%s(acc) * 2.5;" % ((name.encode(),) * 3)
    for name in ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
)
_ANSWER = Answer(
    blobs={sha256(_HIDDEN): "relu.rs"},
    runs={"relu.rs": Fingerprinter().runs(_HIDDEN)},
    common=frozenset(),
    secret=("farm_relu_export",),
    public=("relu_kernel",),
)


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    folder = tmp_path / "registry"
    for number in range(20):
        place = folder / f"crate-{number}" / "src"
        place.mkdir(parents=True)
        (place / "lib.rs").write_text(f"pub fn f{number}() -> u32 {{ {number} }} // relu_kernel\n" * 30)
    (folder / "link").symlink_to("/etc")
    return Mount(name="registry", folder=folder)


def _kinds(mount: Mount, cache: Path) -> dict[str, set[LeakKind]]:
    found: dict[str, set[LeakKind]] = {}
    for leak in open_index(mount, cache).leaks(_ANSWER):
        found.setdefault(leak.path, set()).add(leak.kind)
    return found


def _crate(data: bytes) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        info = tarfile.TarInfo("relu-1.0/src/lib.rs")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def _wheel(data: bytes) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("relu/kernel.rs", data)
    return raw.getvalue()


def test_a_clean_mount_is_clean_and_says_what_it_holds(mount: Mount, tmp_path: Path) -> None:
    index = open_index(mount, tmp_path / "cache")
    assert index.leaks(_ANSWER) == ()
    assert index.place.name == "registry"
    assert index.place.files == 20
    assert index.place.unsearched == 0
    assert index.place.bytes == sum(p.stat().st_size for p in mount.folder.rglob("*.rs"))


@pytest.mark.parametrize(
    ("name", "make", "path", "kinds"),
    [
        ("a.rs", lambda data: data, "a.rs", {LeakKind.SAME_BYTES, LeakKind.TEXT}),
        ("b.md", lambda data: b"> " + data.replace(b"\n", b"\n>\t")[:400], "b.md", {LeakKind.TEXT}),
        ("c.crate", _crate, "c.crate!relu-1.0/src/lib.rs", {LeakKind.SAME_BYTES, LeakKind.TEXT}),
        ("d.whl", _wheel, "d.whl!relu/kernel.rs", {LeakKind.SAME_BYTES, LeakKind.TEXT}),
        ("e.gz", gzip.compress, "e.gz!content", {LeakKind.SAME_BYTES, LeakKind.TEXT}),
        ("g.so", lambda _: b"\x7fELF\0\0farm_relu_export\0", "g.so", {LeakKind.NAME}),
        ("h.txt", lambda _: b"call farm_relu_export(x)", "h.txt", {LeakKind.NAME}),
    ],
)
def test_a_planted_copy_is_found_in_every_form(
    mount: Mount, tmp_path: Path, name: str, make: Callable[[bytes], bytes], path: str, kinds: set[LeakKind]
) -> None:
    assert _kinds(mount, tmp_path / "cache") == {}
    (mount.folder / "crate-3" / name).write_bytes(make(_HIDDEN))
    assert _kinds(mount, tmp_path / "cache") == {f"crate-3/{path}": kinds}


def test_an_unchanged_mount_is_not_read_again(mount: Mount, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = open_index(mount, cache).place
    made = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert open_index(mount, cache).place == first
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()} == made


def test_a_change_that_keeps_size_and_time_is_seen(mount: Mount, tmp_path: Path) -> None:
    path = mount.folder / "crate-1" / "src" / "lib.rs"
    before, status = open_index(mount, tmp_path / "cache").place, path.stat()
    path.write_bytes(path.read_bytes().replace(b"u32", b"i32"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = open_index(mount, tmp_path / "cache").place
    assert after.bytes == before.bytes
    assert after.digest != before.digest
    assert len(list((tmp_path / "cache").glob("*/*/place.json"))) == 1


def test_only_what_changed_is_read_again(mount: Mount, tmp_path: Path) -> None:
    kept = mount.folder / "kept.crate"
    kept.write_bytes(_crate(_HIDDEN))
    (mount.folder / "copy.rs").write_bytes(_HIDDEN)
    first = _kinds(mount, tmp_path / "cache")
    assert first == {"copy.rs": {LeakKind.SAME_BYTES, LeakKind.TEXT}}
    (mount.folder / "copy.rs").unlink()
    (mount.folder / "new.txt").write_bytes(b"farm_relu_export()")
    assert _kinds(mount, tmp_path / "cache") == {
        "kept.crate!relu-1.0/src/lib.rs": {LeakKind.SAME_BYTES, LeakKind.TEXT},
        "new.txt": {LeakKind.NAME},
    }
    again, fresh = (open_index(mount, tmp_path / name).place for name in ("cache", "other"))
    assert again == fresh


def test_the_second_of_two_equal_archives_is_opened_when_the_first_goes(mount: Mount, tmp_path: Path) -> None:
    for name in ("a.crate", "b.crate"):
        (mount.folder / name).write_bytes(_crate(_HIDDEN))
    assert list(_kinds(mount, tmp_path / "cache")) == ["a.crate!relu-1.0/src/lib.rs"]
    (mount.folder / "a.crate").unlink()
    assert list(_kinds(mount, tmp_path / "cache")) == ["b.crate!relu-1.0/src/lib.rs"]


def test_a_file_in_two_places_is_reported_once_and_a_huge_one_is_counted(mount: Mount, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (mount.folder / name).write_bytes(_HIDDEN)
    with (mount.folder / "huge").open("wb") as file:
        file.truncate(SEARCHED_BYTES + 1)
    index = open_index(mount, tmp_path / "cache")
    assert index.place.unsearched == 1
    assert len({leak.path for leak in index.leaks(_ANSWER)}) == 1


@pytest.mark.parametrize("name", ["x.crate", "x.whl", "x.tar.gz", "x.gz", "x.tar.xz"])
def test_a_broken_archive_holds_nothing(name: str) -> None:
    assert list(members(name, b"not an archive", 1 << 20)) == []
    assert list(members(name, _wheel(b"x")[:-8], 1 << 20)) == []


def test_an_archive_is_opened_up_to_the_limit() -> None:
    bomb = _crate(b"\0" * (4 << 20))
    assert len(bomb) < 1 << 16
    assert list(members("x.crate", bomb, 1 << 20)) == []
    assert [len(data) for _, data in members("x.gz", gzip.compress(b"\0" * (4 << 20)), 1 << 20)] == [1 << 20]

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farm.errors import ArtifactMissing
from farm.store import ArtifactStore, FolderStore, MemoryStore, get_tree, put_tree
from farm.tree import Entry, Mode


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    return FolderStore(tmp_path / "store") if request.param == "folder" else MemoryStore()


def test_what_was_put_is_got_back_by_its_digest(store: ArtifactStore) -> None:
    digest = store.put(b"abc")
    assert digest.startswith("ba7816bf")
    assert store.put_stream(io.BytesIO(b"abc")) == digest
    assert store.get(digest) == b"abc"
    with store.open(digest) as file:
        assert file.read() == b"abc"
    assert store.has(digest)


def test_what_was_not_put_is_missing(store: ArtifactStore) -> None:
    assert not store.has("0" * 64)
    with pytest.raises(ArtifactMissing):
        store.get("0" * 64)
    with pytest.raises(ArtifactMissing):
        store.open("../" * 20 + "x" * 4)


def test_a_tree_comes_back_whole(store: ArtifactStore) -> None:
    tree = {
        "a/\udcff": Entry(Mode.EXECUTABLE, b"1"),
        "l": Entry(Mode.LINK, b"a"),
        "z": Entry(Mode.FILE, b"1"),
    }
    assert get_tree(store, put_tree(store, tree)) == tree


def test_a_damaged_file_is_not_handed_out(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    digest = store.put(b"abc")
    path = tmp_path / digest[:2] / digest
    path.chmod(0o644)
    path.write_bytes(b"abd")
    with pytest.raises(ArtifactMissing, match="damaged"):
        store.get(digest)


def test_a_failed_stream_leaves_nothing(tmp_path: Path) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError("torn")

    with pytest.raises(OSError, match="torn"):
        FolderStore(tmp_path).put_stream(Broken())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_many_writers_of_one_thing_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(lambda _: FolderStore(tmp_path).put(b"x" * 100_000), range(32)))
    assert len(digests) == 1
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1

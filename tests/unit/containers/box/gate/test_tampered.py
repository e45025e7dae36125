"""What a candidate changed of trees that are not its own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from containers.box.gate.unpack import tampered
from farm.tree import Entry, Mode, write_tree

TREE = {
    "src/pkg/op.py": Entry(Mode.FILE, b"x = 1\n"),
    "src/pkg/data.bin": Entry(Mode.FILE, b"\0"),
    "src/link.py": Entry(Mode.LINK, b"pkg/op.py"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tree(TREE, tmp_path / "tree")
    return tmp_path / "tree"


def test_a_tree_as_it_was_written_is_whole(folder: Path) -> None:
    assert list(tampered(TREE, folder)) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda f: (f / "src/pkg/op.py").write_text("x = 2\n"), "src/pkg/op.py"),
        (lambda f: (f / "src/pkg/data.bin").unlink(), "src/pkg/data.bin"),
        (lambda f: (f / "src/sitecustomize.py").write_text(""), "src/sitecustomize.py"),
        (lambda f: (f / "pytest.ini").write_text(""), "pytest.ini"),
        (lambda f: ((f / "src/link.py").unlink(), (f / "src/link.py").write_text("x = 1\n")), "src/link.py"),
        (
            lambda f: ((f / "src/pkg/op.py").rename(f / "o"), (f / "src/pkg/op.py").symlink_to(f / "o")),
            "src/pkg/op.py",
        ),
    ],
)
def test_what_was_changed_removed_or_would_be_taken_up_is_named(
    folder: Path, change: Callable[[Path], object], path: str
) -> None:
    change(folder)
    assert path in list(tampered(TREE, folder))


def test_caches_and_what_belongs_there_are_no_matter(folder: Path) -> None:
    (folder / "src/pkg/__pycache__").mkdir()
    (folder / "src/pkg/__pycache__/op.py").write_text("")
    (folder / "src/pkg/cache.json").write_text("{}")
    (folder / "src/libown.so").write_bytes(b"")
    assert list(tampered(TREE, folder, made=("src/libown.so",))) == []

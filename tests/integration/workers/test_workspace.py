import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from containers.access import box_user
from farm.capture import read_tree
from farm.hiding import Bare
from farm.tree import Entry, Mode
from workers.gitrepo import Git
from workers.workspace import foreign_objects, make_workspace, visible

_TREE = {
    "a.py": Entry(Mode.FILE, b"x\r\n"),
    "d/run": Entry(Mode.EXECUTABLE, b"#!"),
    "l": Entry(Mode.LINK, b"a.py"),
    "raw\udcff": Entry(Mode.FILE, b"\0"),
}

GitCommand = Callable[..., str]


def test_a_workspace_is_one_commit_and_nothing_else(tmp_path: Path, at: Git, git: GitCommand) -> None:
    made = make_workspace(at, _TREE, tmp_path / "w", 1_800_000_000)
    assert read_tree(made.folder) == _TREE
    assert git(made.folder, "rev-list", "--all", "--count") == "1"
    assert git(made.folder, "rev-parse", "HEAD") == made.commit
    assert git(made.folder, "status", "--porcelain") == ""
    assert git(made.folder, "remote") == ""
    assert not list(made.folder.rglob("logs"))
    assert not list(made.folder.rglob("*.sample"))
    assert foreign_objects(at, made) == ()


def test_the_box_user_may_write_everything(tmp_path: Path, at: Git) -> None:
    made = make_workspace(at, _TREE, tmp_path / "w", 1)
    user = box_user(os.geteuid(), os.getegid())
    for path in [made.folder, *made.folder.rglob("*")]:
        assert path.lstat().st_uid == user.uid, path
        assert not path.lstat().st_mode & stat.S_IWOTH or path.is_symlink(), path


def test_what_a_crashed_attempt_left_is_replaced(tmp_path: Path, at: Git) -> None:
    (tmp_path / "w" / ".git").mkdir(parents=True)
    (tmp_path / "w" / "half").write_text("")
    made = make_workspace(at, _TREE, tmp_path / "w", 1)
    assert read_tree(made.folder) == _TREE
    assert make_workspace(at, _TREE, tmp_path / "w", 1).commit == made.commit


def test_withheld_files_are_not_visible() -> None:
    bare = Bare(tree=_TREE, withheld=("a.py",), hidden={}, symbols=(), siblings=())
    assert sorted(visible(bare)) == ["d/run", "l", "raw\udcff"]


@pytest.mark.parametrize("how", ["loose", "packed", "borrowed"])
def test_objects_beyond_the_one_commit_are_found(
    tmp_path: Path, at: Git, git: GitCommand, how: str, source: Path
) -> None:
    made = make_workspace(at, _TREE, tmp_path / "w", 1)
    if how == "borrowed":
        alternates = made.folder / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{source / '.git' / 'objects'}\n")
        assert {item.kind for item in foreign_objects(at, made)} == {"blob", "commit", "tag", "tree"}
        return
    name = git(made.folder, "hash-object", "-w", "--stdin", data=b"the answer\n")
    if how == "packed":
        git(made.folder, "pack-objects", ".git/objects/pack/pack", data=name.encode())
        os.unlink(made.folder / ".git" / "objects" / name[:2] / name[2:])
    (found,) = foreign_objects(at, made)
    assert (found.id, found.kind, found.data) == (name, "blob", b"the answer\n")

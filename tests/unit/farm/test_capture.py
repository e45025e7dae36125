import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from farm.capture import CaptureLimits, read_tree
from farm.errors import PatchRefused
from farm.patch import Patch, apply_patch, make_patch
from farm.tree import Entry, Mode, write_tree


def _shared() -> Path | None:
    shared = os.environ.get("TILEFARM_SHARED")
    return Path(shared) if shared else None


def _listing(folder: Path) -> dict[bytes, tuple[str, bytes]]:
    """What a folder holds, by os.walk alone, `.git` folders left out."""
    found = {}
    root = os.fsencode(folder)
    for place, folders, files in os.walk(root):
        if b".git" in folders:
            folders.remove(b".git")
        for name in [*files, *[f for f in folders if os.path.islink(os.path.join(place, f))]]:
            path = os.path.join(place, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                found[os.path.relpath(path, root)] = ("link", os.readlink(path))
            else:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, root)] = (oct(status.st_mode & 0o777), file.read())
    return found


@pytest.mark.shared
def test_every_handed_pair_of_folders_comes_out_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = _shared()
    if shared is None:
        pytest.skip("TILEFARM_SHARED is not set")
    canary = tmp_path / "canary"
    monkeypatch.setenv("CANARY", str(canary))
    cases = tmp_path / "cases"
    cases.mkdir()
    subprocess.run([str(shared / "cases/trees/make"), str(cases)], check=True, stdout=subprocess.DEVNULL)
    names = sorted(case.name for case in cases.iterdir())
    assert len(names) >= 20
    for name in names:
        case = cases / name
        before = read_tree(case / "before")
        if name.startswith("refuse-"):
            with pytest.raises(PatchRefused) as caught:
                read_tree(case / "after")
            assert (case / "REASON").read_text().strip() in str(caught.value), name
            continue
        patch = Patch.from_bytes(make_patch(before, read_tree(case / "after")).to_bytes())
        written = tmp_path / "written" / name
        write_tree(apply_patch(before, patch), written)
        assert _listing(written) == _listing(case / "after"), name
        assert not any(".git" in path.split("/") for path in patch.paths), name
        assert patch.changes, name
    assert not canary.exists()


@pytest.mark.parametrize(
    "name",
    [
        ".GIT",
        ".git ",
        ".git.",
        "git~1",
        "GIT~1",
        ".g\u200cit",
        ".git::$INDEX_ALLOCATION",
        ".git\\x",
        ".Git . .",
    ],
)
def test_disguises_of_git_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("gitdir: elsewhere\n")
    with pytest.raises(PatchRefused, match=r"a path named \.git"):
        read_tree(tmp_path)


@pytest.mark.parametrize("name", [".gitignore", ".github", "git", "x.git", "git~2", ".gitattributes"])
def test_names_that_only_look_like_git_are_carried(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"1")
    assert list(read_tree(tmp_path)) == [name]


def test_a_git_file_below_the_root_is_refused_and_a_repository_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").mkdir()
    (tmp_path / "sub" / ".git" / "config").write_text("")
    (tmp_path / "sub" / "f").write_text("")
    assert list(read_tree(tmp_path)) == ["sub/f"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".git").write_text("gitdir: ../sub/.git\n")
    with pytest.raises(PatchRefused, match=r"'other/\.git': a path named \.git"):
        read_tree(tmp_path)


@pytest.mark.parametrize(
    ("links", "reason"),
    [
        ({"a": "/etc/passwd"}, "outside"),
        ({"a": ".."}, "outside"),
        ({"d/up": "..", "a": "d/up/.."}, "outside"),
        ({"a": ".git/config"}, "into .git"),
        ({"a": "b", "b": "a"}, "circle"),
        ({".gitmodules": "keep"}, "a git file"),
    ],
)
def test_links_that_lead_astray_are_refused(tmp_path: Path, links: dict[str, str], reason: str) -> None:
    for name, target in links.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(target)
    with pytest.raises(PatchRefused, match=reason):
        read_tree(tmp_path)


def test_links_inside_the_tree_are_carried_unfollowed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("x")
    (tmp_path / "l").symlink_to("d")
    (tmp_path / "d" / "m").symlink_to("../l/./f")
    (tmp_path / "dangling").symlink_to("nowhere/x")
    assert {path: entry.mode for path, entry in read_tree(tmp_path).items()} == {
        "d/f": Mode.FILE,
        "d/m": Mode.LINK,
        "dangling": Mode.LINK,
        "l": Mode.LINK,
    }


def test_a_link_that_the_base_had_may_lead_anywhere_until_it_changes(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("/srv/data")
    known = {"data": Entry(Mode.LINK, b"/srv/data")}
    assert read_tree(tmp_path, known=known) == known
    with pytest.raises(PatchRefused, match="outside"):
        read_tree(tmp_path, known={"data": Entry(Mode.LINK, b"/srv")})


def test_sockets_and_sticky_files_are_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(PatchRefused, match="not a file, folder or link"):
            read_tree(tmp_path)
    (tmp_path / "s").unlink()
    (tmp_path / "t").write_text("")
    (tmp_path / "t").chmod(0o1644)
    with pytest.raises(PatchRefused, match="a mode beyond 755"):
        read_tree(tmp_path)


def test_group_bits_do_not_matter(tmp_path: Path) -> None:
    for name, mode in {"a": 0o664, "b": 0o777, "c": 0o600, "d": 0o711}.items():
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    assert "".join("x" if e.mode is Mode.EXECUTABLE else "-" for e in read_tree(tmp_path).values()) == "-x-x"


def test_limits_are_named(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(PatchRefused, match="'sparse': too large"):
        read_tree(tmp_path)
    (tmp_path / "sparse").write_bytes(b"12345")
    (tmp_path / "two").write_bytes(b"12345")
    with pytest.raises(PatchRefused, match="'two': too large"):
        read_tree(tmp_path, limits=CaptureLimits(total_bytes=9))
    with pytest.raises(PatchRefused, match="more than 1 entries"):
        read_tree(tmp_path, limits=CaptureLimits(entries=1))
    (tmp_path / "x/x/x").mkdir(parents=True)
    with pytest.raises(PatchRefused, match="nested more than 2 deep"):
        read_tree(tmp_path, limits=CaptureLimits(depth=2))


def test_the_folder_itself_may_not_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(PatchRefused, match="cannot be opened as a folder"):
        read_tree(tmp_path / "link")


def test_writing_refuses_before_it_writes(tmp_path: Path) -> None:
    tree = {"a": Entry(Mode.FILE, b""), "../b": Entry(Mode.FILE, b"")}
    with pytest.raises(PatchRefused, match=r"`\.\.` part"):
        write_tree(tree, tmp_path / "new")
    with pytest.raises(PatchRefused, match="below a file or link"):
        write_tree({"a": Entry(Mode.LINK, b"/tmp"), "a/b": Entry(Mode.FILE, b"")}, tmp_path / "new")
    assert not (tmp_path / "new").exists()

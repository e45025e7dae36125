import json
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.codec import decode, encode
from farm.hiding import Bare
from farm.leak import LeakKind, LeakReport
from farm.mountindex import Mount
from farm.tree import Entry, Mode
from workers.gitrepo import Git
from workers.leaks import TRUSTED_S, LeakScanner
from workers.workspace import foreign_objects, make_workspace, visible

GitCommand = Callable[..., str]

_HIDDEN = b"\n".join(
    b"let %s = load_%s(&input, [row, column]).cast_%s(acc) * 2.5;" % ((name.encode(),) * 3)
    for name in ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
)
_BARE = Bare(
    tree={
        "ops/add.rs": Entry(Mode.FILE, b"fn add_kernel() {}\n"),
        "README.md": Entry(Mode.FILE, b"how relu was done: " + _HIDDEN),
    },
    withheld=("README.md",),
    hidden={"ops/relu.rs": Entry(Mode.FILE, _HIDDEN)},
    symbols=("farm_relu_export",),
    siblings=(),
)


def _plant_in_mount(folder: Path, mount: Path, git: GitCommand) -> None:
    (mount / "examples.rs").write_bytes(b"// relu\n" + _HIDDEN)


def _plant_loose(folder: Path, mount: Path, git: GitCommand) -> None:
    git(folder, "hash-object", "-w", "--stdin", data=_HIDDEN)


def _plant_packed(folder: Path, mount: Path, git: GitCommand) -> None:
    name = git(folder, "hash-object", "-w", "--stdin", data=_HIDDEN)
    git(folder, "pack-objects", ".git/objects/pack/pack", data=name.encode())
    (folder / ".git" / "objects" / name[:2] / name[2:]).unlink()


def test_a_prepared_workspace_is_clean_and_the_certificate_names_every_place(tmp_path: Path, at: Git) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    (mount / "lib.rs").write_text("fn other() {}\n")
    made = make_workspace(at, visible(_BARE), tmp_path / "w", 1)
    scanner = LeakScanner(tmp_path / "cache", None, [Mount(name="registry", folder=mount)])
    result = scanner.scan(_BARE, made, foreign_objects(at, made), ())
    assert result.clean
    assert [(place.name, place.files) for place in result.places] == [("workspace", 1), ("registry", 1)]
    assert result.places[0].digest == made.digest
    assert result.places[1:] == scanner.prepare()
    assert decode(LeakReport, json.loads(json.dumps(encode(result)))) == result


@pytest.mark.parametrize(
    ("plant", "kind", "path"),
    [
        (_plant_in_mount, LeakKind.TEXT, "examples.rs"),
        (_plant_loose, LeakKind.OBJECT, ".git/objects/"),
        (_plant_packed, LeakKind.OBJECT, ".git/objects/"),
    ],
)
def test_a_planted_copy_is_found_and_its_place_named(
    tmp_path: Path,
    at: Git,
    git: GitCommand,
    plant: Callable[[Path, Path, GitCommand], None],
    kind: LeakKind,
    path: str,
) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    made = make_workspace(at, visible(_BARE), tmp_path / "w", 1)
    scanner = LeakScanner(tmp_path / "cache", None, [Mount(name="registry", folder=mount)])
    scanner.prepare()
    plant(made.folder, mount, git)
    result = scanner.scan(_BARE, made, foreign_objects(at, made), ())
    (leak,) = result.findings
    assert leak.kind is kind
    assert leak.path.startswith(path)
    assert leak.hidden == "ops/relu.rs"
    assert leak.path in result.summary


def test_a_withheld_file_that_stays_visible_is_found(tmp_path: Path, at: Git) -> None:
    made = make_workspace(at, _BARE.tree, tmp_path / "w", 1)
    result = LeakScanner(tmp_path / "cache", None).scan(_BARE, made, foreign_objects(at, made), ())
    assert [(leak.kind, leak.path) for leak in result.findings] == [(LeakKind.TEXT, "README.md")]


def test_an_unchanged_mount_is_trusted_for_a_while_and_a_new_entry_is_seen_at_once(
    tmp_path: Path, at: Git
) -> None:
    mount = tmp_path / "mount"
    (mount / "inner").mkdir(parents=True)
    (mount / "lib.rs").write_text("fn other() {}\n")
    made = make_workspace(at, visible(_BARE), tmp_path / "w", 1)
    now = [0.0]
    places = [Mount(name="registry", folder=mount)]
    scanner = LeakScanner(tmp_path / "cache", None, places, clock=lambda: now[0])

    def files() -> int:
        return scanner.scan(_BARE, made, (), ()).places[1].files

    assert files() == 1
    (mount / "inner" / "deep.rs").write_text("fn deep() {}\n")
    assert files() == 1
    now[0] += TRUSTED_S + 1
    assert files() == 2
    (mount / "relu.rs").write_bytes(_HIDDEN)
    assert not scanner.scan(_BARE, made, (), ()).clean

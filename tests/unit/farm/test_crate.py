"""Building the crate: what is kept, what is forgotten, and where an error is."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from farm import crate
from farm.recipes import ProcessResult

MANIFEST = b"""
[package]
name = "my-kernels"
version = "0.1.0"
edition = "2024"
[lib]
name = "my_kernels"
crate-type = ["cdylib"]
[dependencies]
cutile = "=0.2.0"
"""


class Cargo:
    """A BoxIO whose only process is a cargo that says what it is told to."""

    def __init__(self, root: Path, messages: Sequence[Mapping[str, Any]], exit_code: int) -> None:
        self.workspace = root / "work"
        self.out = root / "out"
        self.toolchain = root / "toolchain"
        self.seen: list[set[str]] = []
        self._output = "".join(json.dumps(message) + "\n" for message in messages) + "error: could not compile\n"
        self._exit_code = exit_code

    def run(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> ProcessResult:
        self.seen.append({str(path.relative_to(cwd)) for path in cwd.rglob("*") if not path.is_dir()})
        return ProcessResult(exit_code=self._exit_code, output=self._output, timed_out=False, seconds=1.0)

    def log(self, text: str) -> None: ...


def world(root: Path) -> Path:
    """A toolchain with warm dependencies and a workspace with a crate; the crate's folder."""
    toolchain = root / "toolchain"
    key = crate.warm_key(MANIFEST, None, rustc="1.95.0", python_key="p")
    for name, data in {
        "toolchain.json": json.dumps({"versions": {"rustc": "1.95.0"}, "python_key": "p"}).encode(),
        f"warm/{key}/Cargo.lock": b"lock",
        f"warm/{key}/target/release/deps/libcutile-1.rlib": b"x" * crate.LINK_FROM_BYTES,
        f"warm/{key}/target/release/.fingerprint/cutile-1/f": b"small",
    }.items():
        (toolchain / name).parent.mkdir(parents=True, exist_ok=True)
        (toolchain / name).write_bytes(data)
    folder = root / "work" / "ops" / "kernels"
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_bytes(MANIFEST)
    (folder / "src" / "lib.rs").write_text("")
    os.utime(folder / "src" / "lib.rs", (1, 1))
    return folder


def artifact(*, fresh: bool) -> dict[str, Any]:
    return {
        "reason": "compiler-artifact",
        "target": {"name": "my_kernels"},
        "filenames": ["/work/target/release/libmy_kernels.so"],
        "fresh": fresh,
    }


def error(file: str, **span: Any) -> dict[str, Any]:
    return {
        "reason": "compiler-message",
        "message": {
            "level": "error",
            "message": "expected item",
            "code": {"code": "E0308"},
            "children": [{"level": "help", "message": "write an item"}],
            "spans": [
                {
                    "file_name": file,
                    "line_start": 3,
                    "column_start": 7,
                    "is_primary": True,
                    "text": [{"text": "  not rust"}],
                    "expansion": None,
                    **span,
                }
            ],
        },
    }


def test_manifests_that_ask_for_the_same_dependencies_share_them() -> None:
    other = b"# a comment\n" + MANIFEST.replace(b"[lib]", b"publish = false\n[lib]\npath = 'src/lib.rs'")
    keys = {crate.warm_key(text, None, rustc="1", python_key="p") for text in (MANIFEST, other)}
    assert len(keys) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"manifest": MANIFEST.replace(b"0.2.0", b"0.5.0")},
        {"manifest": MANIFEST + b"[profile.release]\nlto = true\n"},
        {"lock": b"lock"},
        {"rustc": "2"},
        {"python_key": "q"},
    ],
)
def test_what_changes_compiled_dependencies_changes_their_key(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"manifest": MANIFEST, "lock": None, "rustc": "1", "python_key": "p"}
    before, after = (
        crate.warm_key(k["manifest"], k["lock"], rustc=k["rustc"], python_key=k["python_key"])
        for k in (given, given | change)
    )
    assert before != after


def test_large_files_are_linked_and_records_are_copied(tmp_path: Path) -> None:
    folder = world(tmp_path)
    warm = crate.find_warm(tmp_path / "toolchain", folder)
    assert warm is not None
    crate.place(folder, warm)
    release = folder / "target" / "release"
    assert (release / "deps" / "libcutile-1.rlib").is_symlink()
    assert not (release / ".fingerprint" / "cutile-1" / "f").is_symlink()
    assert (folder / "Cargo.lock").read_bytes() == b"lock"


def test_a_placed_lock_file_finds_the_same_dependencies_and_another_finds_none(tmp_path: Path) -> None:
    folder = world(tmp_path)
    warm = crate.find_warm(tmp_path / "toolchain", folder)
    assert warm is not None
    crate.place(folder, warm)
    assert crate.find_warm(tmp_path / "toolchain", folder) == warm
    (folder / "Cargo.lock").write_bytes(b"another")
    assert crate.find_warm(tmp_path / "toolchain", folder) is None


def test_only_the_crates_own_records_are_forgotten(tmp_path: Path) -> None:
    release = tmp_path / "release"
    own = (".fingerprint/my-kernels-0a1b/f", "deps/libmy_kernels.so", "deps/my_kernels-0a1b.d", "libmy_kernels.so")
    others = (
        ".fingerprint/my-kernels-extra-0a1b/f",
        "deps/libmy_kernels_extra-0a1b.rlib",
        "deps/libcutile-1.rlib",
    )
    for name in own + others:
        (release / name).parent.mkdir(parents=True, exist_ok=True)
        (release / name).touch()
    crate.forget_own(tmp_path, crate.names(MANIFEST))
    left = {str(path.relative_to(release)) for path in release.rglob("*") if path.is_file()}
    assert left == set(others)


def test_a_build_begins_with_a_touched_root_and_no_old_library(tmp_path: Path) -> None:
    folder = world(tmp_path)
    stale = folder / "target" / "release" / "libmy_kernels.so"
    stale.parent.mkdir(parents=True)
    stale.touch()
    io = Cargo(tmp_path, [artifact(fresh=False)], 0)
    built = crate.build(io, folder)
    assert built.library == Path("/work/target/release/libmy_kernels.so")
    assert "target/release/libmy_kernels.so" not in io.seen[0]
    assert (folder / "src" / "lib.rs").stat().st_mtime > 1


def test_a_library_that_cargo_calls_fresh_is_no_build(tmp_path: Path) -> None:
    folder = world(tmp_path)
    built = crate.build(Cargo(tmp_path, [artifact(fresh=True)], 0), folder)
    assert built.library is None
    assert built.environment


def test_an_error_is_placed_in_the_workspace(tmp_path: Path) -> None:
    folder = world(tmp_path)
    built = crate.build(Cargo(tmp_path, [error("src/../../relu_kernel/kernel.rs")], 101), folder)
    first = built.findings[0]
    assert (first.file, first.line, first.column) == ("ops/relu_kernel/kernel.rs", 3, 7)
    assert first.construct == "not rust"
    assert first.message == "[E0308] expected item"
    assert first.advice == "write an item"
    assert not built.environment


def test_an_error_inside_a_macro_is_placed_at_its_call(tmp_path: Path) -> None:
    folder = world(tmp_path)
    call = {"file_name": "src/lib.rs", "line_start": 9, "column_start": 1, "text": [], "expansion": None}
    inside = error("/elsewhere/registry/macros.rs", expansion={"span": call})
    first = crate.build(Cargo(tmp_path, [inside], 101), folder).findings[0]
    assert (first.file, first.line) == ("ops/kernels/src/lib.rs", 9)


def test_cargo_failing_without_a_message_is_told_in_its_words(tmp_path: Path) -> None:
    folder = world(tmp_path)
    built = crate.build(Cargo(tmp_path, [], 101), folder)
    assert "could not compile" in built.findings[0].message


def test_a_changed_manifest_has_no_dependencies_and_says_why(tmp_path: Path) -> None:
    folder = world(tmp_path)
    (folder / "Cargo.toml").write_bytes(MANIFEST.replace(b"0.2.0", b"0.3.0"))
    io = Cargo(tmp_path, [], 0)
    built = crate.build(io, folder)
    assert built.library is None
    assert io.seen == []
    assert "Cargo.toml" in (built.findings[0].advice or "")

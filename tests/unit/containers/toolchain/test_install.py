"""Putting a toolchain together from parts; the Python part is laid ready, everything else is really made."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from containers.toolchain import load, python_part
from containers.toolchain.install import Sources, install, prune
from farm.errors import ToolchainMissing

VERSIONS = '{"torch": "2", "cuda-tile": "1", "nvidia-cuda-tileiras": "13"}'


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def helper(native: Path, words: str) -> None:
    folder = native / "greeter"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Makefile").write_text(
        f"install:\n\tmkdir -p $(PREFIX)/bin\n\techo '{words}' > $(PREFIX)/bin/greeter\n"
    )


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    lock = tmp_path / "requirements.txt"
    lock.write_text("torch==2\n")
    native = tmp_path / "native"
    helper(native, "hello")
    return Sources(lock=lock, native=native, interpreter=tmp_path / "python3")


@pytest.fixture
def root(tmp_path: Path, sources: Sources) -> Path:
    root = tmp_path / "toolchains"
    part = root / "parts" / f"python-{python_part.key(sources.lock, sources.interpreter)}"
    script(part / "venv" / "bin" / "python", f"echo '{VERSIONS}'")
    script(part / "cuda" / "bin" / "tileiras", "")
    return root


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    sysroot = tmp_path / "rust"
    script(sysroot / "bin" / "cargo", "")
    script(tmp_path / "path" / "rustc", f'[ "$1" = --version ] && echo rustc 1.95.0 || echo {sysroot}')
    return {**os.environ, "PATH": f"{tmp_path / 'path'}:/usr/bin:/bin"}


def test_a_toolchain_has_the_layout_and_says_its_versions(
    root: Path, sources: Sources, env: Mapping[str, str]
) -> None:
    done = install(root, sources, env, lambda _: None)
    toolchain = load(root / "current")
    assert toolchain == done.toolchain
    assert toolchain.record.versions == {
        "torch": "2",
        "cuda-tile": "1",
        "tileiras": "13",
        "rustc": "1.95.0",
        "cutile": "none",
    }
    assert (toolchain.root / "native" / "bin" / "greeter").read_text() == "hello\n"
    assert "offline = true" in (toolchain.cargo_home / "config.toml").read_text()
    assert toolchain.warm.is_dir()


def test_installing_again_makes_nothing(root: Path, sources: Sources, env: Mapping[str, str]) -> None:
    install(root, sources, env, lambda _: None)
    said: list[str] = []
    assert install(root, sources, env, said.append).seconds == {}
    assert said == []


def test_a_changed_helper_is_built_and_the_python_part_kept(
    root: Path, sources: Sources, env: Mapping[str, str]
) -> None:
    before = install(root, sources, env, lambda _: None).toolchain
    helper(sources.native, "changed")
    done = install(root, sources, env, lambda _: None)
    assert list(done.seconds) == ["native helper greeter"]
    assert done.toolchain.root != before.root
    assert done.toolchain.record.python_key == before.record.python_key
    assert (done.toolchain.root / "native" / "bin" / "greeter").read_text() == "changed\n"
    assert done.toolchain.warm == before.warm


def test_a_helper_that_does_not_build_leaves_the_old_toolchain_current(
    root: Path, sources: Sources, env: Mapping[str, str]
) -> None:
    before = install(root, sources, env, lambda _: None).toolchain
    (sources.native / "greeter" / "Makefile").write_text("install:\n\t@echo broken >&2; exit 1\n")
    with pytest.raises(ToolchainMissing, match=r"(?s)building greeter.*broken"):
        install(root, sources, env, lambda _: None)
    assert load(root / "current") == before
    assert not list((root / "parts").glob(".*"))


def test_a_helper_that_installs_nothing_is_an_error(root: Path, sources: Sources, env: Mapping[str, str]) -> None:
    (sources.native / "greeter" / "Makefile").write_text("install:\n\t@true\n")
    with pytest.raises(ToolchainMissing, match="installed no file"):
        install(root, sources, env, lambda _: None)


def test_without_rust_the_error_says_what_to_install(root: Path, sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(ToolchainMissing, match="rustup"):
        install(root, sources, {"PATH": str(tmp_path / "empty")}, lambda _: None)


def test_pruning_keeps_what_is_current_and_its_parts(root: Path, sources: Sources, env: Mapping[str, str]) -> None:
    old = install(root, sources, env, lambda _: None).toolchain
    helper(sources.native, "changed")
    new = install(root, sources, env, lambda _: None).toolchain
    (root / "parts" / "python-old").mkdir()
    prune(root, lambda _: None)
    assert not old.root.exists()
    assert load(root / "current") == new
    assert not (root / "parts" / "python-old").exists()


def test_a_folder_without_toolchain_is_told_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ToolchainMissing, match="farm toolchain install"):
        load(tmp_path)


def test_a_toolchain_whose_part_was_removed_says_which(
    root: Path, sources: Sources, env: Mapping[str, str]
) -> None:
    toolchain = install(root, sources, env, lambda _: None).toolchain
    (toolchain.cuda / "bin" / "tileiras").unlink()
    with pytest.raises(ToolchainMissing, match="lost its cuda"):
        load(toolchain.root)


def test_every_folder_that_links_lead_to_is_mounted(root: Path, sources: Sources, env: Mapping[str, str]) -> None:
    toolchain = install(root, sources, env, lambda _: None).toolchain
    mounted = toolchain.mount_folders()
    for name in ("venv", "cuda", "rust", "cargo-home", "warm"):
        assert any((toolchain.root / name).resolve().is_relative_to(folder) for folder in mounted), name
    assert root.resolve() not in mounted

"""A bundle of a target repo that needs no GPU: what is written, and what is refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from containers.box.gate.unpack import subject, trees, unpack
from farm.bundle import MANIFEST, Bundle, read_bundle
from farm.errors import BundleRefused, UsageError
from farm.tree import tree_digest
from tests import gate_bundle
from workers.bundles import BundleWriter

#: What the runner may need beside the standard library.
ALLOWED = {"torch", "numpy", "pytest", "_pytest", "pluggy"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bundle]:
    place = tmp_path_factory.mktemp("bundle")
    folder = place / "b"
    return folder, gate_bundle.write(folder, "relu", "scale", at=place / "made")


@pytest.fixture
def copy(written: tuple[Path, Bundle], tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(written[0]), str(folder)], check=True)
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "run"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_is_read_back_as_it_was_written(written: tuple[Path, Bundle]) -> None:
    folder, bundle = written
    assert read_bundle(folder) == bundle
    assert [item.id for item in bundle.subjects] == ["judge.relu", "judge.scale"]
    assert len({item.library for item in bundle.subjects}) == 1  # the same bytes, once


def test_its_trees_are_the_bare_base_and_the_bare_base_plus_the_patch(
    written: tuple[Path, Bundle], tmp_path: Path
) -> None:
    folder, bundle = written
    item = bundle.subjects[0]
    bare, judged = trees(folder, item)
    assert tree_digest(bare) == item.bare_digest
    assert "src/cpugym/ops/native/relu.py" in judged.keys() - bare.keys()
    unpack(folder, item, tmp_path)
    made = subject(item, tmp_path)
    place = made.patched / made.library_place
    assert place.read_bytes() == made.library.read_bytes()
    newest = max(path.stat().st_mtime_ns for path in made.patched.rglob("*.c"))
    assert place.stat().st_mtime_ns >= newest
    assert not (made.bare / made.library_place).exists()


def test_equal_implementations_give_equal_bundles(written: tuple[Path, Bundle], tmp_path: Path) -> None:
    again = gate_bundle.write(tmp_path / "b", "relu", "scale", at=tmp_path / "made")
    assert again.subjects[0].patch_sha256 == written[1].subjects[0].patch_sha256
    assert again.subjects[0].judged_digest == written[1].subjects[0].judged_digest


def _change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _relax(path: Path) -> None:
    table = json.loads(path.read_text())
    table["gates"]["geomean_at_least"] = 0.5
    path.write_text(json.dumps(table, indent=1, sort_keys=True))


def _link(path: Path) -> None:
    other = path.with_name("elsewhere")
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")
    assert not other.exists()


def _linked_folder(path: Path) -> None:
    evil = path.parent.parent.parent / "evil"
    evil.mkdir()
    _evil(evil / "__init__.py")
    path.symlink_to(evil)


def _evil(path: Path) -> None:
    path.write_text("raise SystemExit('it was imported')\n")


def test_a_changed_byte_in_any_kind_of_file_is_refused_by_name(copy: Path) -> None:
    kinds = ["run", "lib/farm/codec.py", "trees/*", "patches/*", "libs/*.so.xz"]
    for pattern in kinds:
        path = next(iter(sorted(copy.glob(pattern))))
        before = path.read_bytes()
        _change(path)
        with pytest.raises(BundleRefused, match=path.name):
            read_bundle(copy)
        path.write_bytes(before)
    read_bundle(copy)


@pytest.mark.parametrize(
    ("name", "alter", "said"),
    [
        ("lib/farm/patch.py", _change, "lib/farm/patch.py was changed"),
        ("lib/farm/patch.py", Path.unlink, "lib/farm/patch.py is missing"),
        ("lib/sitecustomize.py", Path.touch, "lib/sitecustomize.py is not part of it"),
        ("lib/farm/patch.py", _link, "was changed"),
        ("lib/argparse", _linked_folder, "lib/argparse is not part of it"),
        ("hashlib.py", _evil, "hashlib.py is not part of it"),
    ],
)
def test_the_program_refuses_an_altered_bundle_and_runs_nothing(
    copy: Path, tmp_path: Path, name: str, alter: Callable[[Path], object], said: str
) -> None:
    alter(copy / name)
    done = run(copy, "-o", str(tmp_path / "r"))
    assert done.returncode == 1
    assert said in done.stderr
    assert "nothing was run" in done.stderr
    assert not (tmp_path / "r").exists()


def test_a_changed_setting_gives_another_bundle(copy: Path, written: tuple[Path, Bundle]) -> None:
    _relax(copy / MANIFEST)
    assert read_bundle(copy).digest != written[1].digest


def test_a_manifest_that_is_spelt_otherwise_or_of_another_schema_is_refused(copy: Path) -> None:
    path = copy / MANIFEST
    text = path.read_text()
    path.write_text(text + "\n")
    with pytest.raises(BundleRefused, match="not as the farm wrote it"):
        read_bundle(copy)
    path.write_text(text.replace('"schema": 1', '"schema": 99'))
    with pytest.raises(BundleRefused, match="schema 99"):
        read_bundle(copy)


def test_a_folder_with_other_files_is_left_alone(written: tuple[Path, Bundle], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="other files"):
        BundleWriter.write(_writer(), written[1], tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def _writer() -> BundleWriter:
    from farm.data import config_folder
    from farm.recipe import load_recipe

    recipe = load_recipe(config_folder() / "recipes" / "cutile-rs")
    return BundleWriter(recipe=recipe, conversion=gate_bundle.CpuConversion(), gpu="cpu", versions={})


def test_the_runner_needs_nothing_that_a_gpu_machine_lacks(written: tuple[Path, Bundle]) -> None:
    lib = written[0] / "lib"
    program = f"""
import sys, pkgutil, importlib
sys.dont_write_bytecode = True
sys.path[:] = [{str(lib)!r}] + [p for p in sys.path if "site-packages" not in p]
import containers.box.gate as gate, farm.measured as measured
for package in (gate, measured):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.endswith((".start", ".plugin", ".child")) or ".child." in module.name:
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print(module.name, error.name)
import farm.bundle, farm.results
"""
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    missing = {line.split()[-1].split(".")[0] for line in done.stdout.splitlines()}
    assert missing <= ALLOWED, done.stdout

"""The answers that scenarios play, through the real validators: good ones are good, wrong ones wrong as said."""

import os
import subprocess
from pathlib import Path

import pytest

from containers.box.files import write_json
from containers.toolchain import Toolchain
from drivers.scenarios.repositories import CORPUS, gym
from farm.pipeline.stage import ExecutorKind, Stage
from farm.recipes import load, read_table
from farm.tree import write_tree
from tests.box_program import CAPS, RECIPE, Folders
from tests.builders import order

pytestmark = pytest.mark.toolchain

ANSWERS = CORPUS / "answers"
OPS = "src/minigym/ops/cutile_rs"


class Square(Folders):
    """A box's folders for the op `square`."""

    def put(self, answer: str, path: str) -> None:
        file = self.work / OPS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((ANSWERS / answer).read_text(encoding="utf-8"), encoding="utf-8")

    def python(self, answer: str) -> None:
        places = {"TILEFARM_WORK": str(self.work), "TILEFARM_OUT": str(self.out)}
        argv = (str(self.toolchain.python), str(ANSWERS / answer))
        subprocess.run(argv, env={**os.environ, **places}, check=True)


@pytest.fixture(scope="module")
def traced(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Square:
    """`square` after the programs: A has traced it, B's translator has refused it."""
    made = Square(tmp_path_factory.mktemp("answers") / "square", toolchain)
    conversion = load("cutile-rs", read_table((RECIPE / "recipe.toml").read_text(encoding="utf-8")))
    tree = gym()
    op = next(item for item in conversion.inventory(tree) if item.name == "square")
    write_tree(conversion.bare(tree, op).tree, made.work)
    for folder in (made.out, made.root / "tmp"):
        folder.mkdir(parents=True)
    executors = dict.fromkeys(Stage, ExecutorKind.PROGRAM)
    write_json(made.root / "order.json", order(op="square", executors=executors, caps=CAPS, stage_limit_s=600.0))
    assert made.run("containers.box").returncode == 0
    assert "the translator has no rule for ct.mma" in (made.out / "stages" / "B-1.json").read_text(
        encoding="utf-8"
    )
    made.put("kernel.rs", "square_kernel/kernel.rs")
    made.python("instances.py.txt")
    return made


def test_the_good_kernel_compiles_to_the_references_tile_ir(traced: Square) -> None:
    traced.put("kernel.rs", "square_kernel/kernel.rs")
    for name in ("entry", "compiles", "generated-ir", "lint", "kernel"):
        said = traced.validate(name)
        assert said.code == 0, (name, *said.lines, said.message)
    assert "3 signatures compile to the reference's Tile IR" in traced.validate("kernel").message


def test_the_swapped_kernel_compiles_and_is_found_by_its_store(traced: Square) -> None:
    traced.put("swapped.rs", "square_kernel/kernel.rs")
    for name in ("entry", "compiles", "generated-ir", "lint"):
        assert traced.validate(name).code == 0
    said = traced.validate("kernel")
    assert said.code == 1
    assert "3 of 3 signatures differ" in said.message
    assert "It is the index of `store_view_tko`" in said.message


def test_the_broken_kernel_does_not_compile(traced: Square) -> None:
    traced.put("broken.rs", "square_kernel/kernel.rs")
    said = traced.validate("compiles")
    assert said.code == 1
    assert "call to `matmul` is not supported" in said.message


@pytest.mark.long
def test_the_good_host_code_is_proven_and_the_short_grid_is_found(traced: Square, tmp_path: Path) -> None:
    box = Square(traced.copy(tmp_path / "host").root, traced.toolchain)
    box.put("kernel.rs", "square_kernel/kernel.rs")
    box.put("ffi.rs", "square_kernel/ffi.rs")
    box.put("wrapper.py.txt", "square.py")
    box.python("register.py.txt")
    for name in ("compiles", "registration", "lint", "host", "symbol"):
        said = box.validate(name)
        assert said.code == 0, (name, *said.lines, said.message)
    box.put("wrapper_short.py.txt", "square.py")
    for name in ("registration", "lint"):
        assert box.validate(name).code == 0
    said = box.validate("host")
    assert said.code == 1
    assert "the grid is 2x2x1, the candidate's 1x1x1" in said.message


def test_a_list_of_backends_that_is_lengthened_otherwise_is_red_before_the_patch_is_refused(
    traced: Square, tmp_path: Path
) -> None:
    box = Square(traced.copy(tmp_path / "list").root, traced.toolchain)
    box.put("kernel.rs", "square_kernel/kernel.rs")
    box.put("ffi.rs", "square_kernel/ffi.rs")
    box.put("wrapper.py.txt", "square.py")
    said = box.validate("registration")
    assert any('_backends = _backends + ["cutile-rs"]' in line for line in said.lines)
    box.python("register.py.txt")
    assert box.validate("registration").code == 0
    box.edit("work/tests/ops/test_square.py", '_backends + ["cutile-rs"]', '["cutile", "cutile-rs"]')
    said = box.validate("registration")
    assert said.code == 1
    assert "in another way than the patch may" in said.message

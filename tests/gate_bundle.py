"""A bundle of tests/data/cpugym, written as the farm writes one: the runner takes it on a CPU."""

from collections.abc import Callable
from pathlib import Path

from containers.box.gate.machine import CPU
from farm.bundle import Bundle, OpNames
from farm.capture import read_tree
from farm.changeset import Violation
from farm.data import config_folder
from farm.hiding import Bare
from farm.op import Op
from farm.patch import Patch, make_patch
from farm.recipe import load_recipe
from farm.recipes.plain_copy import PlainCopy
from farm.recipes.plain_copy.layout import Layout
from farm.tree import Tree
from tests import cpugym
from workers.bundles import BundleWriter, Exhibit

BASE = "5" * 40


class CpuConversion(PlainCopy):
    """What a bundle asks a conversion for, answered for cpugym: its patches are judged as they are."""

    def __init__(self) -> None:
        super().__init__(Layout(source="loops", target="native", source_folder="a", target_folder="b"))

    def check(self, bare: Bare, op: Op, patch: Patch) -> tuple[Violation, ...]:
        """See Conversion."""
        return ()

    def judged(self, bare: Bare, op: Op, patch: Patch) -> Patch:
        """See Conversion."""
        return patch

    def names(self, tree: Tree, op: Op) -> OpNames:
        """See Conversion."""
        return OpNames(
            source="loops",
            target="native",
            package="cpugym",
            package_path="src",
            tests=(f"tests/ops/test_{op.name}.py",),
            registry="cpugym.backend.dispatcher:_REGISTRY",
            source_module=f"cpugym.ops.loops.{op.name}",
            target_module=f"cpugym.ops.native.{op.name}",
            source_dsl="loop.tile",
            library_place=cpugym.PLACE,
            entries=(f"cpu_{op.name}", f"cpu_{op.name}_backward"),
            perf=("test_perf",),
            benchmark="tests.common:benchmark_framework",
            comparison="tests.common:PyTestCase.assertCorrectness",
            environment={"DISABLE_FALLBACK": "1"},
        )


def write(
    folder: Path,
    *ops: str,
    at: Path,
    edit: Callable[[Path], None] | None = None,
    collector: bytes | None = None,
    job: str | None = None,
) -> Bundle:
    """A bundle in `folder` of landed ops, each patched tree changed by `edit`; `at` is a scratch folder.

    `job` is the subject's id where there is one alone.
    """
    exhibits = [exhibit(at / op, op, edit, job) for op in ops]
    writer = BundleWriter(
        recipe=load_recipe(config_folder() / "recipes" / "cutile-rs"),
        conversion=CpuConversion(),
        gpu=CPU,
        versions={"cc": "any"},
    )
    bundle = writer.bundle(exhibits, farm="test", collector=collector)
    writer.write(bundle, folder)
    return bundle


def exhibit(folder: Path, op: str, edit: Callable[[Path], None] | None = None, job: str | None = None) -> Exhibit:
    """A landed op of cpugym, as the farm would judge it."""
    made = cpugym.subject(folder, op, edit)
    (made.patched / cpugym.PLACE).unlink()
    bare, patched = (dict(read_tree(tree)) for tree in (made.bare, made.patched))
    return Exhibit(
        id=job or made.id,
        op=Op(name=op, registered=(op,), source_files=(), kernels=(), tests=(), target_files=()),
        repo="cpugym",
        base=BASE,
        tree=patched,
        bare=Bare(tree=bare, withheld=(), hidden={}, symbols=(), siblings=()),
        patch=make_patch(bare, patched),
        library=made.library.read_bytes(),
    )

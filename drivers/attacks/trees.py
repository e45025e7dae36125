"""From the packaged repo to a candidate: bare base, patch, judged tree, built and interposed libraries."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from containers import interpose
from containers.box.gate.subject import Subject
from drivers.attacks.model import Edit
from farm.capture import read_tree
from farm.changeset import Violation
from farm.data import attacked_repo
from farm.errors import FarmError
from farm.hiding import Bare
from farm.op import Op
from farm.patch import Patch, apply_patch, make_patch
from farm.recipes import load
from farm.tree import Entry, Mode, Tree, write_tree

NATIVE = "src/cpugym/ops/native"
KERNELS = f"{NATIVE}/kernels"
LOOPS = "src/loop/libloops.so"

#: The recipe cutile-rs with this repo's places: what checks a patch is the recipe's own code.
LAYOUT = {
    "source": "loops",
    "target": "native",
    "package_holds": ["ops/loops", "ops/native/kernels"],
    "source_folder": "ops/loops",
    "target_folder": "ops/native",
    "registration": "{package}/ops/native/__init__.py",
    "modules": "{package}/ops/native/kernels/src/lib.rs",
    "helpers": "{package}/backend/native.py",
    "tests": ["tests/ops/**/test_{op}.py"],
    "implementation": ["{package}/ops/native/{op}.py", "{package}/ops/native/kernels/{op}.c"],
    "change_set": [
        "{package}/ops/native/{op}.py",
        "{package}/ops/native/kernels/{op}.c",
        "{package}/ops/native/__init__.py",
        "{package}/ops/native/kernels/src/lib.rs",
    ],
    "perf": ["test_perf*"],
    "registry": "{module}.backend.dispatcher:_REGISTRY",
    "source_dsl": "loop.tile",
    "library": "{package}/ops/native/kernels/build/libcpugym_kernels.so",
    "benchmark": "tests.common:benchmark_framework",
    "comparison": "tests.common:PyTestCase.assertCorrectness",
    "environment": {"DISABLE_FALLBACK": "1"},
}


class Broken(FarmError):
    """A candidate of the corpus cannot be made from the packaged repo; report this as a defect."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """The repo with an op landed, and its bare base."""

    landed: Tree
    op: Op
    bare: Bare


def base_of(op: str, edits: Sequence[Edit]) -> Base:
    """The packaged repo, changed by `edits`, as the base that candidates of an op are patches against."""
    conversion = load("cutile_rs", LAYOUT)
    whole = read_tree(attacked_repo())
    landed = edited({path: whole[path] for path in whole if "__pycache__" not in path}, edits)
    found = next(item for item in conversion.inventory(landed) if item.name == op)
    return Base(landed=landed, op=found, bare=conversion.bare(landed, found))


def edited(tree: Tree, edits: Sequence[Edit]) -> dict[str, Entry]:
    """The tree with the edits done in order. Raises Broken when a text to replace is not there once."""
    result = dict(tree)
    for edit in edits:
        data = edit.new.encode()
        if edit.old is not None:
            text = result[edit.path].data.decode()
            if text.count(edit.old) != 1:
                raise Broken(f"{edit.path} holds {text.count(edit.old)} times {edit.old!r}, 1 is expected")
            data = text.replace(edit.old, edit.new).encode()
        result[edit.path] = Entry(Mode.LINK if edit.link else Mode.FILE, data)
    return result


def patch_of(base: Base, edits: Sequence[Edit]) -> Patch:
    """The patch of a candidate."""
    return make_patch(base.bare.tree, edited(base.landed, edits))


def violations(base: Base, patch: Patch) -> tuple[Violation, ...]:
    """What the recipe's check has against a patch."""
    return load("cutile_rs", LAYOUT).check(base.bare, base.op, patch)


def write_base(base: Base, folder: Path) -> tuple[Path, Path]:
    """The bare base twice, with its library: as it is, and with the calls of that library counted.

    Gives both, the second beside `loops.so`, the library that its counting stand-in calls.
    """
    plain, counted = folder / "bare", folder / "counted"
    write_tree(base.bare.tree, plain)
    compile_library([plain / "src/loop/loops.c"], plain / LOOPS)
    shutil.copytree(plain, counted)
    real = folder / "loops.so"
    shutil.copyfile(plain / LOOPS, real)
    shutil.copyfile(interpose.build(real, folder / "loops").shim, counted / LOOPS)
    return plain, counted


def write_candidate(base: Base, patch: Patch, bare: Path, folder: Path) -> Subject:
    """A candidate as a gate gets it. Raises Broken when its library cannot be built."""
    conversion = load("cutile_rs", LAYOUT)
    tree = apply_patch(base.bare.tree, conversion.judged(base.bare, base.op, patch))
    patched, libs = folder / "patched", folder / "libs"
    write_tree(tree, patched)
    shutil.copyfile(bare / LOOPS, patched / LOOPS)
    library = libs / "library.so"
    compile_library(sorted((patched / KERNELS).glob("*.c")), library)
    made = interpose.build(library, libs, prefix="cpu_")
    names = conversion.names(tree, base.op)
    place = patched / names.library_place
    place.parent.mkdir()
    shutil.copyfile(made.shim, place)
    names = replace(names, entries=tuple(name for name in made.symbols if name.startswith(f"cpu_{base.op.name}")))
    return Subject(
        id=f"judge.{base.op.name}",
        op=base.op.name,
        source=names.source,
        target=names.target,
        bare=bare,
        patched=patched,
        package=names.package,
        package_path=names.package_path,
        tests=names.tests,
        registry=names.registry,
        source_module=names.source_module,
        target_module=names.target_module,
        source_dsl=names.source_dsl,
        library_place=names.library_place,
        library=library,
        shim=made.shim,
        stub=made.stub,
        entries=names.entries,
        perf=names.perf,
        benchmark=names.benchmark,
        comparison=names.comparison,
        environment=dict(names.environment),
    )


def compile_library(sources: Sequence[Path], library: Path) -> None:
    """Make a shared library with cc. Raises Broken with the compiler's words."""
    library.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), *map(str, sources)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Broken("cc is not installed") from None
    if done.returncode != 0:
        raise Broken(f"{library.name}: {done.stderr[-1000:]}")

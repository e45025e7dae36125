"""Bare and patched trees of tests/data/cpugym with built libraries: subjects of the gates that run on a CPU.

A test judges a candidate of its own by an `edit` of the patched tree, e.g. another ops/native/relu.py or
another kernels/relu.c.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from containers import interpose
from containers.box.gate.subject import Subject

DATA = Path(__file__).parent / "data" / "cpugym"
NATIVE = "src/cpugym/ops/native"
KERNELS = f"{NATIVE}/kernels"
PLACE = f"{KERNELS}/build/libcpugym_kernels.so"
_PARAMETER = '    if is_backend_available("native"):\n        _backends = _backends + ["native"]\n'


def subject(
    folder: Path,
    op: str,
    edit: Callable[[Path], None] | None = None,
    *,
    base: Callable[[Path], None] | None = None,
) -> Subject:
    """Trees and libraries in the new folder `folder`, for relu, scale or add.

    `edit` changes the patched tree before its library is built; `base` changes both trees before the op is
    taken out of the bare one.
    """
    bare, patched, libs = folder / "bare", folder / "patched", folder / "libs"
    shutil.copytree(DATA, bare, ignore=shutil.ignore_patterns("build", "*.so", "__pycache__"))
    compile_library([bare / "src/loop/loops.c"], bare / "src/loop/libloops.so")
    if base is not None:
        base(bare)
    shutil.copytree(bare, patched)
    remove_op(bare, op)
    if edit is not None:
        edit(patched)
    libs.mkdir()
    library = libs / "library.so"
    compile_library(sorted((patched / KERNELS).glob("*.c")), library)
    made = interpose.build(library, libs, prefix="cpu_")
    for tree in (bare, patched):
        (tree / PLACE).parent.mkdir()
    shutil.copyfile(library, patched / PLACE)
    return Subject(
        id=f"judge.{op}",
        op=op,
        source="loops",
        target="native",
        bare=bare,
        patched=patched,
        package="cpugym",
        package_path="src",
        tests=(f"tests/ops/test_{op}.py",),
        registry="cpugym.backend.dispatcher:_REGISTRY",
        source_module=f"cpugym.ops.loops.{op}",
        target_module=f"cpugym.ops.native.{op}",
        source_dsl="loop.tile",
        library_place=PLACE,
        library=library,
        shim=made.shim,
        stub=made.stub,
        entries=tuple(name for name in made.symbols if name.startswith(f"cpu_{op}")),
        perf=("test_perf",),
        benchmark="tests.common:benchmark_framework",
        comparison="tests.common:PyTestCase.assertCorrectness",
        environment={"DISABLE_FALLBACK": "1"},
    )


def remove_op(tree: Path, op: str) -> None:
    """Take the op's target implementation, its registration and the tests' backend parameter out of a tree."""
    (tree / NATIVE / f"{op}.py").unlink()
    (tree / KERNELS / f"{op}.c").unlink()
    _cut(tree / NATIVE / "__init__.py", f"    from . import {op}  # noqa: F401\n")
    _cut(tree / f"tests/ops/test_{op}.py", _PARAMETER)


def compile_library(sources: list[Path], library: Path) -> None:
    """Make a shared library with cc."""
    library.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, *sources], check=True)


def replace(path: Path, old: str, new: str) -> None:
    """Put `new` in place of `old`, which must be there."""
    text = path.read_text()
    assert old in text, f"{path}: no {old!r}"
    path.write_text(text.replace(old, new))


def _cut(path: Path, text: str) -> None:
    replace(path, text, "")

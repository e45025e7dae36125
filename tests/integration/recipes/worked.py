"""The recipe's worked examples as ops of the built-in repository, which has none of them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.box.files import read_json, write_json
from farm.analysis import Analysis, ArrayArg, ConstantArg, Signature
from farm.capture import read_tree
from farm.layout import Layout, find_package
from farm.pipeline.stage import ExecutorKind, Stage
from farm.recipes import load, read_table
from farm.recipes.cutile_rs.instances import INSTANCES, Instance, Instances
from farm.recipes.cutile_rs.plan import ELEMENT_BYTES, Quantity, promise
from farm.recipes.cutile_rs.registration import add_import, add_module
from farm.recipes.cutile_rs.syntax import read_source
from farm.recipes.cutile_rs.testfile import add_backend
from farm.tree import Entry, Mode, Tree, write_tree
from tests.box_program import CAPS, MINIGYM, RECIPE, Folders
from tests.builders import order

EXAMPLES = RECIPE / "references" / "examples"
GYM = "src/minigym/ops"


@dataclass(frozen=True, kw_only=True)
class Example:
    """An op of the examples' folder, and what the repository needs to have it as one of its own."""

    op: str
    signature: str  #: parameters of the function that dispatches
    rows: str  #: values of `parametrize`, as source text
    make: str  #: arguments of a row, as source text
    expected: str  #: what the row compares with

    def file(self, name: str) -> str:
        """One of the files in the example's text."""
        return files_of(EXAMPLES / f"{self.op}.md")[name]


BLEND = Example(
    op="blend",
    signature="a, b, weight",
    rows='"rows, columns, dtype", [(16, 256, torch.float16), (7, 200, torch.float32), (64, 1024, torch.bfloat16)]',
    make="a, b = torch.randn(2, rows, columns, dtype=dtype, device='cuda'); given = (a, b, 0.25)",
    expected="(a.float() + 0.25 * (b.float() - a.float())).to(dtype)",
)
ROW_SPREAD = Example(
    op="row_spread",
    signature="x",
    rows='"rows, columns, dtype", [(16, 256, torch.float16), (7, 200, torch.float32), (64, 1024, torch.bfloat16)]',
    make="x = torch.randn(rows, columns, dtype=dtype, device='cuda'); given = (x,)",
    expected="x.amax(1) - x.amin(1)",
)
GRAM = Example(
    op="gram",
    signature="x",
    rows='"rows, columns, dtype", [(64, 256, torch.float16), (100, 72, torch.float16), (128, 64, torch.bfloat16)]',
    make="x = torch.randn(rows, columns, dtype=dtype, device='cuda'); given = (x,)",
    expected="(x.float() @ x.float().T).to(dtype)",
)
ALL = (BLEND, ROW_SPREAD, GRAM)


def files_of(text: Path) -> dict[str, str]:
    """The files in a text: fenced blocks that begin with a language and a name."""
    found = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return dict(found)


def repository(example: Example) -> Tree:
    """The built-in repository with the example as one more op."""
    tree = dict(read_tree(MINIGYM))
    op = example.op
    _put(tree, f"{GYM}/cutile/{op}.py", example.file("source.py"))
    _append(tree, f"{GYM}/cutile/__init__.py", f"\nfrom .{op} import {op}  # noqa: E402\n")
    _append(
        tree,
        f"{GYM}/ops.py",
        f'\n\n@dispatch("{op}")\ndef {op}({example.signature}):\n    raise _missing("{op}")\n',
    )
    _append(tree, f"{GYM}/__init__.py", f"\nfrom .ops import {op}  # noqa: E402\n")
    _put(tree, f"tests/ops/test_{op}.py", _tests(example))
    return tree


def begin(folders: Folders, example: Example) -> None:
    """Workspace and order of the example's conversion; its box traces the op and then stops."""
    tree = repository(example)
    conversion = load("cutile-rs", read_table((RECIPE / "recipe.toml").read_text(encoding="utf-8")))
    op = next(item for item in conversion.inventory(tree) if item.name == example.op)
    write_tree(conversion.bare(tree, op).tree, folders.work)
    for folder in (folders.out, folders.root / "tmp"):
        folder.mkdir(parents=True)
    executors = dict.fromkeys(Stage, ExecutorKind.SCRIPTED) | {Stage.A: ExecutorKind.PROGRAM}
    made = order(op=example.op, executors=executors, caps=CAPS, stage_limit_s=600.0)
    write_json(folders.root / "order.json", made)


def put_kernel(folders: Folders, example: Example, file: str, instance: Callable[[Signature], Instance]) -> None:
    """Lay a kernel file of the example into the workspace, and say for each signature what it is."""
    target = folders.work / GYM / "cutile_rs" / f"{example.op}_kernel" / "kernel.rs"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(example.file(file), encoding="utf-8")
    analysis = read_json(folders.out / "analysis.json", Analysis)
    made = tuple(instance(signature) for signature in analysis.signatures)
    write_json(folders.out / INSTANCES, Instances(instances=made))


def put_host(folders: Folders, example: Example, layout: Layout, ffi: str = "ffi.rs") -> None:
    """Lay the example's host code into the workspace, with the lines of shared files that belong to it."""
    folder = folders.work / GYM / "cutile_rs"
    (folder / f"{example.op}_kernel" / "ffi.rs").write_text(example.file(ffi), encoding="utf-8")
    (folder / f"{example.op}.py").write_text(example.file("wrapper.py"), encoding="utf-8")
    tree = read_tree(folders.work)
    package = find_package(tree, layout)
    lines, modules = package.path(layout.registration), package.path(layout.modules)
    tests = f"tests/ops/test_{example.op}.py"
    for path, data in (
        (lines, add_import(read_source(tree, lines), example.op, layout.target)),
        (modules, add_module(tree[modules].data, example.op, package)),
        (tests, add_backend(read_source(tree, tests), package).data),
    ):
        (folders.work / path).write_bytes(data)


def by_pointers(entry: str) -> Callable[[Signature], Instance]:
    """Arrays as pointer, extents and strides but the last; generics: element, constants, promises an array."""

    def instance(signature: Signature) -> Instance:
        arrays = [arg for arg in signature.args if isinstance(arg, ArrayArg)]
        generics = [arrays[0].dtype, *_constants(signature)]
        args: dict[str, str] = {}
        for array in arrays:
            size, rank = ELEMENT_BYTES[array.dtype], len(array.shape)
            generics.append(str(promise(Quantity.POINTER, array.address, size)))
            generics += [str(promise(Quantity.EXTENT, extent, size)) for extent in array.shape]
            generics += [str(promise(Quantity.STRIDE, stride, size)) for stride in array.strides[:-1]]
            args[array.name] = f"pointer {array.name}"
            args |= {f"{array.name}_dim{axis}": f"extent {array.name} {axis}" for axis in range(rank)}
            args |= {f"{array.name}_stride{axis}": f"stride {array.name} {axis}" for axis in range(rank - 1)}
        if entry == "row_spread_kernel":  # alignment of the one element that a block writes
            generics.append(str(ELEMENT_BYTES[arrays[0].dtype]))
        return _instance(signature, entry, generics, args)

    return instance


def by_tensors(entry: str, *, differs: str = "") -> Callable[[Signature], Instance]:
    """Arrays whole; generics: element, constants."""

    def instance(signature: Signature) -> Instance:
        arrays = [arg for arg in signature.args if isinstance(arg, ArrayArg)]
        args = {array.name: f"tensor {array.name}" for array in arrays}
        return _instance(signature, entry, [arrays[0].dtype, *_constants(signature)], args, differs)

    return instance


def _instance(
    signature: Signature, entry: str, generics: Sequence[str], args: dict[str, str], differs: str = ""
) -> Instance:
    scalars = {arg.name: f"scalar {arg.name}" for arg in signature.args if arg.kind == "scalar"}
    return Instance(
        signature=signature.id, entry=entry, generics=tuple(generics), args=args | scalars, differs=differs
    )


def _constants(signature: Signature) -> list[str]:
    return [str(arg.value) for arg in signature.args if isinstance(arg, ConstantArg)]


def _tests(example: Example) -> str:
    return f"""# SPDX-License-Identifier: MIT
import pytest
import torch

import minigym
from tests import common


class TestExample:
    _backends = ["cutile"]

    @pytest.mark.parametrize({example.rows})
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, rows, columns, dtype, backend):
        common.choose(backend)
        {example.make}
        common.check(minigym.ops.{example.op}(*given), {example.expected})
"""


def _put(tree: Tree, path: str, text: str) -> None:
    tree[path] = Entry(Mode.FILE, text.encode())


def _append(tree: Tree, path: str, text: str) -> None:
    tree[path] = Entry(tree[path].mode, tree[path].data + text.encode())

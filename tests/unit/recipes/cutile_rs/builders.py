"""Trees, analyses and plans for the tests of the conversion's pure code."""

import ast
from collections.abc import Mapping
from pathlib import Path

from farm.analysis import Analysis, Arg, ArrayArg, ConstantArg, KernelSource, ScalarArg, Signature
from farm.codec import decode
from farm.layout import Layout
from farm.op import Op
from farm.recipes import read_table
from farm.recipes.cutile_rs.inventory import inventory
from farm.recipes.cutile_rs.plan import Entry, EntryGeneric, EntryParam, GenericRole, KernelPlan, ParamRole
from farm.tree import Entry as File
from farm.tree import Mode, Tree

ROOT = Path(__file__).parents[4]
RECIPE = ROOT / "config" / "recipes" / "cutile-rs"
MINIGYM = ROOT / "tests" / "data" / "minigym"


def layout() -> Layout:
    """The layout of the shipped recipe."""
    return decode(Layout, read_table((RECIPE / "recipe.toml").read_text(encoding="utf-8")), "layout")


def folder_tree(folder: Path) -> dict[str, File]:
    """The source files of a folder as a tree."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): File(Mode.FILE, path.read_bytes()) for path in paths}


def text_tree(files: Mapping[str, str]) -> dict[str, File]:
    """A tree of text files."""
    return {path: File(Mode.FILE, text.encode()) for path, text in files.items()}


def minigym() -> dict[str, File]:
    """The built-in target repo."""
    return folder_tree(MINIGYM)


def with_files(tree: Tree, files: Mapping[str, str | bytes]) -> dict[str, File]:
    """The tree with some files replaced or added."""
    data = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return {**tree, **{path: File(Mode.FILE, item) for path, item in data.items()}}


def op_named(tree: Tree, name: str) -> Op:
    """An op of a tree."""
    return next(op for op in inventory(tree, layout()) if op.name == name)


def gym_with(source: str, test: str = "", helpers: str = "") -> dict[str, File]:
    """The built-in repo with one more op, `probe`, written as `source`."""
    files = {"src/minigym/ops/cutile/probe.py": source}
    if test:
        files["tests/ops/test_probe.py"] = test
    if helpers:
        files["src/minigym/ops/cutile/utils.py"] = helpers
    return with_files(minigym(), files)


def traced(
    op: Op,
    tree: Tree,
    *,
    dtype: str = "f16",
    rank: int = 2,
    scalars: tuple[str, ...] = (),
    hints: Mapping[str, int | None] | None = None,
) -> Analysis:
    """An analysis in which every kernel of the op was launched once: constants by their annotation."""
    kernels, signatures = [], []
    for site in op.kernels:
        function = _function(tree, site.file, site.function)
        names = tuple(arg.arg for arg in function.args.args)
        name = f"{op.name}.{site.function}"
        kernels.append(
            KernelSource(name=name, function=site.function, file=site.file, line=site.line, parameters=names)
        )
        args: tuple[Arg, ...] = tuple(_arg(item, dtype, rank, scalars) for item in function.args.args)
        signatures.append(
            Signature(
                id=f"s{len(signatures)}",
                kernel=name,
                args=args,
                hints=dict(hints or {}),
                tuned=False,
                ir="",
                bytecode="",
                sha256="",
            )
        )
    return Analysis(
        op=op.name,
        source="cutile",
        target="cutile-rs",
        gpu="sm_90",
        tests=(),
        source_files=op.source_files,
        rows=(),
        kernels=tuple(kernels),
        signatures=tuple(signatures),
        void=False,
        versions={},
    )


def _function(tree: Tree, path: str, name: str) -> ast.FunctionDef:
    nodes = ast.walk(ast.parse(tree[path].data))
    return next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name)


def _arg(item: ast.arg, dtype: str, rank: int, scalars: tuple[str, ...]) -> Arg:
    if item.annotation is not None and "Const" in ast.unparse(item.annotation):
        return ConstantArg(name=item.arg, value=64)
    if item.arg in scalars:
        return ScalarArg(name=item.arg, dtype="f32", value=0.5)
    shape = (4, 64)[-rank:]
    return ArrayArg(name=item.arg, dtype=dtype, shape=shape, strides=(64, 1)[-rank:], address=4096)


def planned(analysis: Analysis, source: str = "// kernels\n") -> KernelPlan:
    """A plan that passes every array by pointer, extents and strides, all of one element type."""
    return KernelPlan(
        op=analysis.op,
        module=f"{analysis.op}_module",
        source=source,
        entries=tuple(
            _entry(kernel, signature)
            for kernel, signature in zip(analysis.kernels, analysis.signatures, strict=True)
        ),
    )


def _entry(kernel: KernelSource, signature: Signature) -> Entry:
    params: list[EntryParam] = []
    generics: list[EntryGeneric] = []
    for arg in signature.args:
        match arg:
            case ArrayArg():
                if not generics:
                    generics.append(element("E", arg.name))
                params.append(pointer(arg.name))
                for axis in range(len(arg.shape)):
                    params += [
                        EntryParam(name=f"{arg.name}_s{axis}", role=ParamRole.EXTENT, source=arg.name, axis=axis),
                        EntryParam(name=f"{arg.name}_t{axis}", role=ParamRole.STRIDE, source=arg.name, axis=axis),
                    ]
            case ScalarArg():
                params.append(
                    EntryParam(name=arg.name, role=ParamRole.SCALAR, source=arg.name, rust_type=arg.dtype)
                )
            case ConstantArg():
                generics.append(
                    EntryGeneric(name=arg.name, role=GenericRole.CONSTANT, source=arg.name, rust_type="i32")
                )
    return Entry(
        name=kernel.function.strip("_"),
        kernel=kernel.name,
        unsafe_fn=True,
        generics=tuple(generics),
        params=tuple(params),
    )


def element(name: str, source: str) -> EntryGeneric:
    """An element generic."""
    return EntryGeneric(name=name, role=GenericRole.ELEMENT, source=source, rust_type="type")


def pointer(source: str, element_type: str = "E") -> EntryParam:
    """A pointer parameter."""
    return EntryParam(name=source, role=ParamRole.POINTER, source=source, rust_type=f"*mut {element_type}")

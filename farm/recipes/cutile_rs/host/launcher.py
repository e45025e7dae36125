"""The wrapper's generated parts: C prototypes, and one Python function per kernel that makes the call."""

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farm.recipes.cutile_rs.host.exports import C_TYPES, Export

#: Helpers of the target backend that every wrapper calls.
HELPERS = ("bind_kernel_function_cffi", "check_rc", "make_tensor_desc")
#: Names of the module constants; a wrapper renames those that its reference uses for something else.
CONSTANTS = ("_KERNEL", "_FFI_CDEF", "_AUTO_COMPILE_OPTION")
#: Width of generated Python lines.
WIDTH = 110
#: Short dtype names to torch's.
_TORCH = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
    "f8e5m2": "float8_e5m2",
    "f8e4m3fn": "float8_e4m3fn",
}
_LOCALS = ("stream", "grid", "ffi", "lib", "grid_xyz", "device_id", "rc")


def constants(op: str, exports: Sequence[Export], names: Mapping[str, str]) -> str:
    """The module constants, with the C prototypes."""
    prototypes = "\n".join(_prototype(export) for export in exports)
    return (
        f'{names["_KERNEL"]} = "{op}"\n'
        f"# The C functions of {op}_kernel/ffi.rs.\n"
        f'{names["_FFI_CDEF"]} = """\n{prototypes}\n"""\n'
        f"{names['_AUTO_COMPILE_OPTION']} = -1"
    )


@dataclass(frozen=True, kw_only=True)
class Words:
    """What generated code calls things."""

    names: Mapping[str, str]  #: of CONSTANTS
    op: str
    target: str  #: target backend


def launcher(name: str, exports: Sequence[Export], words: Words) -> str:
    """The function that launches a kernel with the source kernel's arguments, in their order.

    Of several entries it takes the one whose conditions hold; a launch that none was written for raises
    NotImplementedError.
    """
    parameters = exports[0].kernel.parameters
    own = {word: fresh(word, {*parameters}) for word in _LOCALS}
    entries = " or ".join(f"`{export.entry.name}`" for export in exports)
    signature = [own["stream"], own["grid"], *parameters]
    head = f"def {name}({', '.join(signature)}):"
    if len(head) > WIDTH:
        head = f"def {name}(\n" + "".join(f"    {item},\n" for item in signature) + "):"
    array = next((source for export in exports for source in export.arrays), own["stream"])
    index = f"{array}.device.index if {array}.device.index is not None else torch.cuda.current_device()"
    bound = f"bind_kernel_function_cffi({words.names['_KERNEL']}, {words.names['_FFI_CDEF']})"
    lines = [
        *head.split("\n"),
        f'    """Launch {entries}; the arguments are those of the original kernel."""',
        f"    {own['ffi']}, {own['lib']} = {bound}",
        f"    {own['grid_xyz']} = (*{own['grid']}, 1, 1)[:3]",
        f"    {own['device_id']} = {index}",
    ]
    return "\n".join((*lines, *_choice(exports, own, words)))


def _choice(exports: Sequence[Export], own: Mapping[str, str], words: Words) -> Iterator[str]:
    """The calls, each under its entry's conditions."""
    if len(exports) == 1 and not exports[0].entry.when:
        yield from (f"    {line}" for line in _call(exports[0], own, words))
        return
    word = "if"
    for export in exports:
        if not export.entry.when:
            yield from ["    else:", *(f"        {line}" for line in _call(export, own, words))]
            return
        alone = len(export.entry.when) == 1
        conditions = [condition(text, alone=alone) for text in export.entry.when]
        line = f"    {word} {' and '.join(conditions)}:"
        if len(line) > WIDTH:
            yield f"    {word} ("
            yield from (f"        {'and ' if i else ''}{text}" for i, text in enumerate(conditions))
            yield "    ):"
        else:
            yield line
        yield from (f"        {item}" for item in _call(export, own, words))
        word = "elif"
    message = f"{words.target} {words.op}: no kernel was written for these arguments"
    yield from ("    else:", f'        raise NotImplementedError("{message}")')


def _call(export: Export, own: Mapping[str, str], words: Words) -> Iterator[str]:
    auto = words.names["_AUTO_COMPILE_OPTION"]
    yield f"{own['rc']} = {own['lib']}.{export.symbol}("
    yield from (f"    make_tensor_desc({own['ffi']}, {source})," for source in export.arrays)
    yield from (f"    {number.source}," for number in export.numbers)
    yield f"    *{own['grid_xyz']},"
    yield from (f"    {auto if hint is None else hint}," for hint in (export.num_ctas, export.occupancy))
    yield f"    {own['device_id']},"
    yield f"    {own['stream']}.cuda_stream,"
    yield ")"
    yield f'check_rc({own["rc"]}, "{export.symbol}")'


def condition(text: str, *, alone: bool) -> str:
    """An entry's condition as Python over tensors: `dtype(x) == 'f16'` becomes `x.dtype == torch.float16`."""
    expression = _Plain().visit(ast.parse(text, mode="eval")).body
    loose = isinstance(expression, (ast.BoolOp, ast.IfExp, ast.Lambda)) and not alone
    return f"({ast.unparse(expression)})" if loose else ast.unparse(expression)


class _Plain(ast.NodeTransformer):
    """Turns dtype names that are compared with an array's into torch's, and `not a == b` into `a != b`."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        inner = node.operand
        is_simple = isinstance(inner, ast.Compare) and isinstance(inner.ops[-1], (ast.Eq, ast.NotEq))
        if isinstance(node.op, ast.Not) and isinstance(inner, ast.Compare) and is_simple and len(inner.ops) == 1:
            opposite = ast.NotEq() if isinstance(inner.ops[0], ast.Eq) else ast.Eq()
            return self.visit_Compare(ast.Compare(inner.left, [opposite], inner.comparators))
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        parts = list(ast.walk(node))
        if any(_is_dtype(part) for part in parts):
            for part in parts:
                for field, value in ast.iter_fields(part):
                    items = value if isinstance(value, list) else [value]
                    new = [_torch_name(item) for item in items]
                    setattr(part, field, new if isinstance(value, list) else new[0])
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _is_dtype(node):
            return ast.Attribute(value=node.args[0], attr="dtype", ctx=ast.Load())
        return self.generic_visit(node)


def _is_dtype(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dtype"


def _torch_name(item: Any) -> Any:
    if isinstance(item, ast.Constant) and item.value in _TORCH:
        return ast.Attribute(value=ast.Name(id="torch", ctx=ast.Load()), attr=_TORCH[item.value], ctx=ast.Load())
    return item


def fresh(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores behind it as it takes to be new."""
    while name in taken:
        name += "_"
    return name


def _prototype(export: Export) -> str:
    groups = [
        [f"const TensorDesc* {name}" for name in export.arrays.values()],
        [f"{C_TYPES.get(number.rust_type, 'int32_t')} {number.name}" for number in export.numbers],
        ["int32_t grid_x", "int32_t grid_y", "int32_t grid_z"],
        ["int32_t num_cta_in_cga", "int32_t occupancy", "int32_t device_id", "uint64_t raw_stream"],
    ]
    lines = [line for group in groups if group for line in _filled(group)]
    return f"int32_t {export.symbol}(\n" + ",\n".join(lines) + ");"


def _filled(items: Sequence[str]) -> Iterator[str]:
    line = ""
    for item in items:
        if line and len(line) + len(item) > 90:
            yield f"    {line}"
            line = ""
        line = f"{line}, {item}" if line else item
    yield f"    {line}"

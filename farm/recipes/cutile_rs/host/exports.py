"""The C functions of an op: what crosses the boundary between the Python wrapper and ffi.rs."""

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from farm.analysis import Analysis, ArrayArg, KernelSource, Signature
from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.plan import Entry, EntryGeneric, GenericRole, KernelPlan, ParamRole

#: Rust scalar types to what C and cffi call them.
C_TYPES = {
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "f32": "float",
    "f64": "double",
}
#: Element types that a TensorDesc can carry under their own name.
ELEMENTS = ("f32", "f16", "bf16", "i32", "i64", "f8e5m2", "f8e4m3fn")
_FLOATS = ("f32", "f16", "bf16")
_TAKEN = frozenset(
    {"device", "device_id", "grid_x", "grid_y", "grid_z", "num_cta_in_cga", "occupancy", "op", "opts"}
    | {"generics", "raw_stream", "rc", "stream", "as", "box", "const", "crate", "dyn", "enum", "extern", "fn"}
    | {"impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "self", "static", "struct"}
    | {"super", "trait", "type", "unsafe", "use", "where", "while", "abstract", "final", "gen", "macro"}
    | {"override", "priv", "try", "typeof", "unsized", "virtual", "yield", "char", "int", "short", "long"}
    | {"signed", "unsigned", "void", "double", "float", "restrict", "register", "inline", "auto", "default"}
)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A scalar or constant that crosses as a C number."""

    source: str  #: name of the kernel's parameter
    name: str  #: name in C and Rust
    rust_type: str  #: type of the C argument, e.g. `i32`
    is_bool: bool  #: crosses as 0 or 1


@dataclass(frozen=True, kw_only=True)
class Element:
    """An element generic and the types that it is dispatched over."""

    generic: str  #: Rust name, e.g. `E`
    source: str  #: the array whose dtype decides
    types: tuple[str, ...]  #: Rust element types, in the order of dispatch


@dataclass(frozen=True, kw_only=True)
class Export:
    """One C function: a kernel entry with its arrays and numbers."""

    symbol: str
    entry: Entry
    kernel: KernelSource
    arrays: dict[str, str]  #: kernel parameter to C name, in the kernel's order
    array_types: dict[str, str]  #: kernel parameter to element type, a generic's name or a Rust type
    numbers: tuple[Number, ...]  #: in the kernel's order
    elements: tuple[Element, ...]
    occupancy: int | None  #: compile option, None: the compiler decides
    num_ctas: int | None


def make_exports(plan: KernelPlan, analysis: Analysis) -> tuple[tuple[Export, ...], tuple[Finding, ...]]:
    """The C functions of a plan, and what stands in their way."""
    kernels = {kernel.name: kernel for kernel in analysis.kernels}
    exports, findings = [], []
    for entry in plan.entries:
        kernel = kernels.get(entry.kernel)
        if kernel is None:
            message = f"entry {entry.name} translates {entry.kernel}, which the analysis does not know"
            findings.append(_finding(None, entry.name, message, "run stage A again, then stage B"))
            continue
        signatures = tuple(item for item in analysis.signatures if item.kernel == entry.kernel)
        symbol = f"cutile_{plan.op}" if len(plan.entries) == 1 else f"cutile_{plan.op}_{entry.name}"
        export = _export(symbol, entry, kernel, signatures)
        exports.append(export)
        findings += _problems(export, signatures)
    return tuple(exports), tuple(findings)


def _export(symbol: str, entry: Entry, kernel: KernelSource, signatures: tuple[Signature, ...]) -> Export:
    names = _names(kernel.parameters)
    used = [param.source for param in entry.params if param.role is not ParamRole.SCALAR]
    used += [item.source for item in entry.generics if item.role is not GenericRole.CONSTANT]
    arrays = {name: names[name] for name in kernel.parameters if name in used}
    types = _array_types(entry)
    return Export(
        symbol=symbol,
        entry=entry,
        kernel=kernel,
        arrays=arrays,
        array_types=types,
        numbers=tuple(_numbers(entry, kernel, names)),
        elements=tuple(_element(item, signatures) for item in entry.generics if item.role is GenericRole.ELEMENT),
        occupancy=_hint(signatures, "occupancy"),
        num_ctas=_hint(signatures, "num_ctas"),
    )


def _names(parameters: Iterable[str]) -> dict[str, str]:
    """C names of Python parameters: snake case, no keyword, no name twice."""
    names: dict[str, str] = {}
    for parameter in parameters:
        name = parameter.lower().strip("_") or "arg"
        while name in _TAKEN or name in names.values() or keyword.iskeyword(name):
            name += "_"
        names[parameter] = name
    return names


def _array_types(entry: Entry) -> dict[str, str]:
    types = {item.source: item.name for item in entry.generics if item.role is GenericRole.ELEMENT}
    for param in entry.params:
        match = re.match(r"(?:\*\s*(?:mut|const)\s+|&\s*(?:'\w+\s+)?Tensor\s*<\s*)(\w+)", param.rust_type)
        if match and param.role in {ParamRole.POINTER, ParamRole.TENSOR}:
            types[param.source] = match[1]
    return types


def _numbers(entry: Entry, kernel: KernelSource, names: dict[str, str]) -> Iterator[Number]:
    types: dict[str, str] = {}
    for item in entry.generics:
        if item.role is GenericRole.CONSTANT:
            types[item.source] = item.rust_type
    for param in entry.params:
        if param.role is ParamRole.SCALAR:
            types[param.source] = param.rust_type
    for source in kernel.parameters:
        if source in types:
            rust_type = types[source]
            is_bool = rust_type == "bool"
            yield Number(
                source=source, name=names[source], rust_type="i32" if is_bool else rust_type, is_bool=is_bool
            )


def _element(item: EntryGeneric, signatures: tuple[Signature, ...]) -> Element:
    traced = traced_dtypes(item.source, signatures)
    wanted = traced | set(_FLOATS) if traced & set(_FLOATS) else traced
    types = tuple(name for name in ELEMENTS if name in wanted)
    return Element(generic=item.name, source=item.source, types=types)


def traced_dtypes(array: str, signatures: tuple[Signature, ...]) -> set[str]:
    """The dtypes that an array parameter had in traced launches."""
    args = (arg for signature in signatures for arg in signature.args)
    return {arg.dtype for arg in args if isinstance(arg, ArrayArg) and arg.name == array}


def _hint(signatures: tuple[Signature, ...], name: str) -> int | None:
    values = {signature.hints.get(name) for signature in signatures}
    return values.pop() if len(values) == 1 else None


def _problems(export: Export, signatures: tuple[Signature, ...]) -> Iterator[Finding]:
    kernel = export.kernel
    if not export.arrays:
        message = f"kernel {kernel.function} takes no array, so nothing says on which device it runs"
        yield _finding(kernel, kernel.function, message, "pass a tensor to the kernel")
    for element in export.elements:
        for dtype in sorted(traced_dtypes(element.source, signatures) - set(ELEMENTS)):
            message = f"a tensor descriptor has no code for dtype {dtype} of `{element.source}`"
            yield _finding(kernel, element.source, message, f"dtypes that cross: {', '.join(ELEMENTS)}")
    generic = {element.generic for element in export.elements}
    for array, dtype in export.array_types.items():
        if dtype not in generic and dtype not in ELEMENTS:
            message = f"a tensor descriptor has no code for dtype {dtype} of `{array}`"
            yield _finding(kernel, array, message, f"dtypes that cross: {', '.join(ELEMENTS)}")
    for number in export.numbers:
        if number.rust_type not in C_TYPES:
            message = f"`{number.source}` has the type {number.rust_type!r}, which does not cross a C boundary"
            yield _finding(kernel, number.source, message, f"types that cross: {', '.join(C_TYPES)}, bool")
    for name in ("occupancy", "num_ctas"):
        if len({signature.hints.get(name) for signature in signatures}) > 1:
            message = f"launches of {kernel.function} differ in the hint {name}, a tuner's or `replace_hints`'"
            yield _finding(kernel, name, message, "launch with one set of hints, or port the tuner by hand")


def _finding(kernel: KernelSource | None, construct: str, message: str, advice: str) -> Finding:
    return Finding(
        file=kernel.file if kernel else None,
        line=kernel.line if kernel else None,
        column=1 if kernel else None,
        construct=construct,
        message=message,
        advice=advice,
    )

"""ffi.rs: one exported C function per kernel entry, with the crate's own marshalling macros."""

from collections.abc import Iterable, Iterator, Sequence

from farm.recipes.cutile_rs.host.exports import Element, Export, Number
from farm.recipes.cutile_rs.plan import EntryGeneric, EntryParam, GenericRole, KernelPlan, ParamRole, Quantity

_WIDTH = 100
_TAB = "    "


def write_ffi(plan: KernelPlan, exports: Sequence[Export], header: str) -> str:
    """The text of ffi.rs. `header` holds the comment lines (`//`) that open the repo's Rust files."""
    roles = {param.role for export in exports for param in export.entry.params}
    divisors = any(item.role is GenericRole.DIVISOR for export in exports for item in export.entry.generics)
    lines = [*([header.rstrip("\n"), ""] if header else [])]
    lines += [
        f"// C functions of {plan.op}, one per kernel entry; ../{plan.op}.py calls them.",
        "// Tensors cross as descriptors, the grid and the kernel's constants as numbers.",
        "",
        *_uses(plan, exports, roles),
    ]
    if divisors:
        lines += [
            "",
            "/// Largest power of two, at most 16, that divides `value`.",
            "fn divisor(value: i64) -> i64 {",
            "    1 << value.trailing_zeros().min(4)",
            "}",
        ]
    generics = [item for export in exports for item in export.entry.generics]
    lines += _promises({item.quantity for item in generics if item.role is GenericRole.PROMISE})
    for export in exports:
        lines += ["", *_function(export)]
    return "\n".join(lines) + "\n"


def _promises(quantities: set[Quantity | None]) -> Iterator[str]:
    """Functions that give the generics of role PROMISE, for the quantities that occur."""
    if Quantity.POINTER in quantities:
        yield from (
            "",
            "/// Alignment that the kernel may rely on, bytes.",
            "fn promised_pointer(address: i64) -> i64 {",
            "    if address % 16 == 0 { 16 } else { 1 }",
            "}",
        )
    if Quantity.EXTENT in quantities:
        yield from (
            "",
            "/// What the kernel may rely on: 0 says that the extent is 1, else what divides it.",
            "fn promised_extent(extent: i64) -> i64 {",
            "    match extent {",
            "        1 => 0,",
            "        _ if extent % 16 == 0 => 16,",
            "        _ => 1,",
            "    }",
            "}",
        )
    if quantities & {Quantity.STRIDE, Quantity.LONE_STRIDE, Quantity.ELEMENT}:
        yield from (
            "",
            "/// Bytes of an element, by the code of its type.",
            "fn element_bytes(dtype: i32) -> i64 {",
            "    match dtype {",
            "        4 => 8,",
            "        0 | 3 => 4,",
            "        1 | 2 => 2,",
            "        _ => 1,",
            "    }",
            "}",
        )
    if Quantity.ELEMENT in quantities:
        yield from (
            "",
            "/// Alignment of an element that is accessed alone, bytes. `steps` are the array's strides, each",
            "/// with a divisor of the index on its axis.",
            "fn promised_element(address: i64, dtype: i32, steps: &[(i64, i64)]) -> i64 {",
            "    let bytes = element_bytes(dtype);",
            "    let terms = steps.iter().map(|&(stride, divisor)| match stride * bytes % 16 {",
            "        0 => 16,",
            "        _ => divisor * bytes,",
            "    });",
            "    if address % 16 == 0 { terms.fold(16, i64::min) } else { 1 }",
            "}",
        )
    if Quantity.STRIDE in quantities:
        yield from (
            "",
            "/// What the kernel may rely on: 0 says that the stride is 1, else its divisor.",
            "fn promised_stride(stride: i64, dtype: i32) -> i64 {",
            "    let bytes = element_bytes(dtype);",
            "    match stride {",
            "        1 => 0,",
            "        _ if stride * bytes % 16 == 0 => 16 / bytes,",
            "        _ => 1,",
            "    }",
            "}",
        )


def _uses(plan: KernelPlan, exports: Sequence[Export], roles: set[ParamRole]) -> Iterator[str]:
    types = {name for export in exports for name in _rust_types(export)}
    half = sorted(types & {"f16", "bf16"})
    small = sorted(types & {"f8e5m2", "f8e4m3fn"})
    entries = sorted(export.entry.name for export in exports)
    helpers = ["TensorDesc", *(["borrow_tensor"] if ParamRole.TENSOR in roles else []), "rc"]
    yield "use core::ffi::c_void;"
    if ParamRole.POINTER in roles:
        yield "use cuda_async::device_buffer::DevicePointer;"
    yield f"use cuda_core::{{{', '.join(['Device', 'Stream', *small])}}};"
    if half:
        yield f"use cutile::half::{_group(half)};"
    yield "use cutile::prelude::*;"
    yield "use cutile::tile_kernel::{CompileOptions, TileKernel};"
    yield ""
    yield f"use crate::ffi_util::{_group(helpers)};"
    yield from _wrapped(f"use {plan.module}::", entries)


def _rust_types(export: Export) -> set[str]:
    dispatched = {name for element in export.elements for name in element.types}
    return dispatched | set(export.array_types.values())


def _group(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def _wrapped(head: str, names: Sequence[str]) -> Iterator[str]:
    line = f"{head}{_group(names)};"
    if len(line) <= _WIDTH:
        yield line
    else:
        yield f"{head}{{"
        yield from (f"{_TAB}{name}," for name in names)
        yield "};"


def _function(export: Export) -> Iterator[str]:
    yield f"/// Launch `{export.entry.name}`. The grid is in blocks; compile options <= 0 leave the choice to"
    yield "/// the compiler."
    yield "#[unsafe(no_mangle)]"
    yield f'pub unsafe extern "C" fn {export.symbol}('
    yield from (f"{_TAB}{name}: *const TensorDesc," for name in export.arrays.values())
    yield from (f"{_TAB}{number.name}: {number.rust_type}," for number in export.numbers)
    for name in ("grid_x", "grid_y", "grid_z", "num_cta_in_cga", "occupancy", "device_id"):
        yield f"{_TAB}{name}: i32,"
    yield f"{_TAB}raw_stream: u64,"
    yield ") -> i32 {"
    yield from _indented(_body(export))
    yield "}"


def _indented(lines: Iterable[str], depth: int = 1) -> Iterator[str]:
    return (f"{_TAB * depth}{line}" if line else "" for line in lines)


def _body(export: Export) -> Iterator[str]:
    names = list(export.arrays.values())
    left = _tuple([f"{name}_d" for name in names])
    yield from _call(f"let {left} = crate::deref_descs!", names, ";")
    yield "if grid_x <= 0 || grid_y <= 0 || grid_z <= 0 {"
    yield f"{_TAB}return rc::INVALID_ARGS;"
    yield "}"
    decided = {element.source for element in export.elements}
    for element in export.elements:
        name = export.arrays[element.source]
        yield f"let {name}_type: &'static str = crate::resolve_dtype!({name}_d);"
    for array, name in export.arrays.items():
        if array not in decided:
            yield from _same_type(export, array, name)
    yield ""
    yield "crate::setup_device_stream!(device, stream, device_id, raw_stream);"
    yield ""
    yield from _dispatch(export, export.elements)


def _same_type(export: Export, array: str, name: str) -> Iterator[str]:
    """A check that an array has the element type that its parameter says."""
    wanted = export.array_types.get(array)
    if wanted is None:
        return
    for element in export.elements:
        if element.generic == wanted:
            yield f"if {name}_d.dtype != {export.arrays[element.source]}_d.dtype {{"
            break
    else:
        yield f'if crate::ffi_util::dtype_str({name}_d.dtype) != Some("{wanted}") {{'
    yield f"{_TAB}return rc::UNSUPPORTED_DTYPE;"
    yield "}"


def _dispatch(export: Export, elements: Sequence[Element]) -> Iterator[str]:
    if not elements:
        yield from _launch(export)
        return
    element, *rest = elements
    macro = f"with_{element.generic.lower()}"
    yield f"macro_rules! {macro} {{"
    yield f"{_TAB}(${element.generic}:ty) => {{{{"
    yield from _indented(_dispatch(export, rest), 2)
    yield f"{_TAB}}}}};"
    yield "}"
    name = export.arrays[element.source]
    yield from _call("crate::dispatch_by_dtype!", [f"{name}_type", macro, *element.types], "")


def _launch(export: Export) -> Iterator[str]:
    generic_types = {element.generic: f"${element.generic}" for element in export.elements}
    handled: set[tuple[str, ParamRole]] = set()
    for param in export.entry.params:
        if (param.source, param.role) in handled:
            continue
        handled.add((param.source, param.role))
        name = export.arrays.get(param.source, "")
        rust = export.array_types.get(param.source, "")
        kind = generic_types.get(rust, rust)
        if param.role is ParamRole.POINTER:
            yield f"let {name}_p: DevicePointer<{kind}> ="
            yield f"{_TAB}unsafe {{ DevicePointer::from_cu_deviceptr({name}_d.ptr) }};"
        elif param.role is ParamRole.TENSOR:
            yield f"let {name}_t = unsafe {{ borrow_tensor::<{kind}>({name}_d) }};"
    entry = export.entry
    if entry.generics:
        yield f"// generics: <{', '.join(item.name for item in entry.generics)}>"
    yield from _call("let generics: Vec<String> = vec!", [_generic(export, i) for i in entry.generics], ";", "[]")
    yield "let opts = crate::compile_options!(occupancy, num_cta_in_cga);"
    arguments = [_argument(export, param) for param in entry.params]
    call = list(_call(entry.name, arguments, ""))
    if entry.unsafe_fn:
        one_line = len(call) == 1 and len(call[0]) < _WIDTH - 40
        call = [f"unsafe {{ {call[0]} }}"] if one_line else ["unsafe {", *_indented(call), "}"]
    yield f"let op = {call[0]}"
    yield from call[1:]
    chain = _indented if len(call) == 1 else iter
    yield from chain([".generics(generics)", ".grid((grid_x as u32, grid_y as u32, grid_z as u32))"])
    yield from chain([".compile_options(opts);"])
    yield "match op.sync_on(&stream) {"
    yield f"{_TAB}Ok(_) => rc::OK,"
    yield f"{_TAB}Err(error) => {{"
    yield f'{_TAB * 2}eprintln!("{export.symbol}: launch failed: {{error:?}}");'
    yield f"{_TAB * 2}rc::LAUNCH_FAILED"
    yield f"{_TAB}}}"
    yield "}"


def _generic(export: Export, item: EntryGeneric) -> str:
    match item.role:
        case GenericRole.ELEMENT:
            return f"{export.arrays[item.source]}_type.to_string()"
        case GenericRole.CONSTANT:
            return f"{_number(export, item.source)}.to_string()"
        case GenericRole.DIVISOR:
            return f"divisor({_quantity(export, item)}).to_string()"
        case GenericRole.PROMISE:
            return f"{_promise(export, item)}.to_string()"


def _promise(export: Export, item: EntryGeneric) -> str:
    value = _quantity(export, item)
    match item.quantity:
        case Quantity.POINTER | None:
            return f"promised_pointer({value})"
        case Quantity.EXTENT:
            return f"promised_extent({value})"
        case Quantity.STRIDE:
            return f"promised_stride({value}, {export.arrays[item.source]}_d.dtype)"
        case Quantity.LONE_STRIDE:
            return f"(16 / element_bytes({export.arrays[item.source]}_d.dtype))"
        case Quantity.ELEMENT:
            desc = f"{export.arrays[item.source]}_d"
            steps = [f"({desc}.strides[{axis}], {step})" for axis, step in enumerate(item.steps) if step]
            return f"promised_element({value}, {desc}.dtype, &[{', '.join(steps)}])"


def _number(export: Export, source: str) -> str:
    number: Number = next(number for number in export.numbers if number.source == source)
    return f"({number.name} != 0)" if number.is_bool else number.name


def _quantity(export: Export, item: EntryGeneric) -> str:
    desc = f"{export.arrays[item.source]}_d"
    match item.quantity:
        case Quantity.POINTER | Quantity.ELEMENT | None:
            return f"{desc}.ptr as i64"
        case Quantity.EXTENT:
            return f"{desc}.shape[{item.axis or 0}]"
        case Quantity.STRIDE | Quantity.LONE_STRIDE:
            return f"{desc}.strides[{item.axis or 0}]"


def _argument(export: Export, param: EntryParam) -> str:
    name = export.arrays.get(param.source, "")
    kind = param.rust_type or "i32"
    match param.role:
        case ParamRole.POINTER:
            return f"{name}_p"
        case ParamRole.TENSOR:
            return f"&*{name}_t"
        case ParamRole.EXTENT:
            return (
                f"{name}_d.dim({param.axis or 0})" if kind == "i32" else f"{name}_d.shape[{param.axis}] as {kind}"
            )
        case ParamRole.STRIDE:
            return f"{name}_d.strides[{param.axis or 0}] as {kind}"
        case ParamRole.SCALAR:
            return _number(export, param.source)


def _tuple(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _call(head: str, arguments: Sequence[str], tail: str, brackets: str = "()") -> Iterator[str]:
    """A call on one line, or with a line an argument when that is too long."""
    opening, closing = brackets[0], brackets[1]
    line = f"{head}{opening}{', '.join(arguments)}{closing}{tail}"
    if len(line) <= _WIDTH - 12:
        yield line
    else:
        yield f"{head}{opening}"
        yield from (f"{_TAB}{argument}," for argument in arguments)
        yield f"{closing}{tail}"

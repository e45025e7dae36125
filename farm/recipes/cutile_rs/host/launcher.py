"""The wrapper's generated parts: C prototypes, and one Python function per kernel that makes the call."""

from collections.abc import Container, Iterator, Mapping, Sequence

from farm.recipes.cutile_rs.host.exports import C_TYPES, Export

#: Helpers of the target backend that every wrapper calls.
HELPERS = ("bind_kernel_function_cffi", "check_rc", "make_tensor_desc")
#: Names of the module constants; a wrapper renames those that its reference uses for something else.
CONSTANTS = ("_KERNEL", "_FFI_CDEF", "_AUTO_COMPILE_OPTION")
#: Width of generated Python lines.
WIDTH = 110
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


def launcher(name: str, export: Export, names: Mapping[str, str], backend: str) -> str:
    """The function that launches an entry with the arguments of the source kernel, in their order."""
    own = {word: fresh(word, {*export.kernel.parameters}) for word in _LOCALS}
    device = f"{next(iter(export.arrays), own['stream'])}.device"
    auto = names["_AUTO_COMPILE_OPTION"]
    values = [
        *(f"make_tensor_desc({own['ffi']}, {source})" for source in export.arrays),
        *(number.source for number in export.numbers),
        f"*{own['grid_xyz']}",
        *(str(hint) if hint is not None else auto for hint in (export.num_ctas, export.occupancy)),
        own["device_id"],
        f"{own['stream']}.cuda_stream",
    ]
    arguments = "".join(f"        {value},\n" for value in values)
    parameters = [own["stream"], own["grid"], *export.kernel.parameters]
    head = f"def {name}({', '.join(parameters)}):\n"
    if len(head) > WIDTH:
        head = f"def {name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + "):\n"
    index = f"{device}.index if {device}.index is not None else torch.cuda.current_device()"
    return (
        f"{head}"
        f'    """Launch `{export.entry.name}`; the arguments are those of the {backend} kernel."""\n'
        f"    {own['ffi']}, {own['lib']} = "
        f"bind_kernel_function_cffi({names['_KERNEL']}, {names['_FFI_CDEF']})\n"
        f"    {own['grid_xyz']} = (*{own['grid']}, 1, 1)[:3]\n"
        f"    {own['device_id']} = {index}\n"
        f"    {own['rc']} = {own['lib']}.{export.symbol}(\n{arguments}    )\n"
        f'    check_rc({own["rc"]}, "{export.symbol}")'
    )


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

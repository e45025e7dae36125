"""What the kernel translator tells the host-code writer: entries, generics, parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Bytes of an element; types not named here have one.
ELEMENT_BYTES = {
    "f64": 8,
    "i64": 8,
    "u64": 8,
    "f32": 4,
    "i32": 4,
    "u32": 4,
    "f16": 2,
    "bf16": 2,
    "i16": 2,
    "u16": 2,
}


class Quantity(StrEnum):
    """A number that the host knows about an array."""

    POINTER = "pointer"  #: address of element 0
    EXTENT = "extent"  #: shape[axis]
    STRIDE = "stride"  #: strides[axis], elements
    LONE_STRIDE = "lone_stride"  #: strides[axis] of an axis with extent 1 that is accessed by tile
    ELEMENT = "element"  #: address of the one element that an access is for


def promise(quantity: Quantity, value: int, element_bytes: int) -> int:
    """What the source's launcher promises its compiler of a quantity with this value: 0 that it is 1, else
    a power of two that divides it (1: nothing). Extents and strides are in elements, a pointer in bytes."""
    if quantity is Quantity.POINTER:
        return 16 if value % 16 == 0 else 1
    if quantity is Quantity.LONE_STRIDE:
        return 16 // element_bytes
    if value == 1:
        return 0
    if quantity is Quantity.EXTENT:
        return 16 if value % 16 == 0 else 1
    return 16 // element_bytes if value * element_bytes % 16 == 0 else 1


def element_promise(address: int, strides: Sequence[int], steps: Sequence[int], element_bytes: int) -> int:
    """A power of two that the source's compiler derives for the address of an element: bytes.

    `strides` are in elements; `steps` say of the index on each axis what power of two divides it, 0 that it is 0.
    """
    if promise(Quantity.POINTER, address, element_bytes) == 1:
        return 1
    terms = [
        16 if stride * element_bytes % 16 == 0 else min(16, step * element_bytes)
        for stride, step in zip(strides, steps, strict=True)
        if step
    ]
    return min([16, *terms])


class ParamRole(StrEnum):
    """Where the host takes an entry's runtime argument from."""

    POINTER = "pointer"  #: `*mut E`: the array's address, DevicePointer on the host
    TENSOR = "tensor"  #: `&Tensor<E, {[-1, ..]}>`: the whole array, borrowed
    EXTENT = "extent"  #: i32: shape[axis] of the array
    STRIDE = "stride"  #: i32: strides[axis] of the array, elements
    SCALAR = "scalar"  #: a runtime scalar of the kernel


class GenericRole(StrEnum):
    """Where the host takes an entry's generic from."""

    ELEMENT = "element"  #: element type of the array
    CONSTANT = "constant"  #: value of the kernel's constant parameter
    DIVISOR = "divisor"  #: largest power of two, at most 16, that divides the quantity of the array
    PROMISE = "promise"  #: `i32`: what the source's launch promises of the quantity, see `promise`


@dataclass(frozen=True, kw_only=True)
class EntryParam:
    """One runtime parameter of a Rust entry."""

    name: str  #: Rust name
    role: ParamRole
    source: str  #: name of the Python kernel's parameter it comes from
    axis: int | None = None  #: for EXTENT and STRIDE
    rust_type: str = ""  #: as written in the entry


@dataclass(frozen=True, kw_only=True)
class EntryGeneric:
    """One generic of a Rust entry, in the order `.generics(...)` wants."""

    name: str  #: Rust name, e.g. `E`, `TILE_SIZE`
    role: GenericRole
    source: str  #: name of the Python kernel's parameter it comes from
    rust_type: str  #: `type`, `i32`, `bool`
    quantity: Quantity | None = None  #: for DIVISOR and PROMISE
    axis: int | None = None  #: for DIVISOR and PROMISE
    steps: tuple[int, ...] = ()  #: for ELEMENT: see `element_promise`


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One `#[cutile::entry]` function and the Python kernel it translates."""

    name: str  #: Rust function name
    kernel: str  #: `analysis.KernelSource.name`
    unsafe_fn: bool  #: declared `unsafe fn`
    generics: tuple[EntryGeneric, ...]
    params: tuple[EntryParam, ...]
    #: Python conditions over the kernel's parameters under which the entry may be launched: constants by
    #: name, arrays as `a.shape[0]`, `a.stride(1)`, `dtype(a)` (a short name). Of several entries of one
    #: kernel, the one whose conditions hold is meant.
    when: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class KernelPlan:
    """The translated kernels of one op."""

    op: str
    module: str  #: Rust module name, `<op>_module`
    source: str  #: text of kernel.rs
    entries: tuple[Entry, ...]

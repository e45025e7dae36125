"""Tensors as records."""

from typing import Any

from containers.box.trace.addresses import AddressBook
from farm.analysis import ArrayArg

#: torch dtype name -> ours.
DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "bool",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0fnu",
}


def described_tensor(name: str, tensor: Any, book: AddressBook) -> ArrayArg:
    """Everything that a launch can depend on."""
    torch_name = str(tensor.dtype).removeprefix("torch.")
    return ArrayArg(
        name=name,
        dtype=DTYPES.get(torch_name, torch_name),
        shape=tuple(int(extent) for extent in tensor.shape),
        strides=tuple(int(stride) for stride in tensor.stride()),
        address=book.address(tensor),
    )

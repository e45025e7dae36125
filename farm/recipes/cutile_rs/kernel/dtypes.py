"""Element types by their short names, and the source language's promotion rules."""

import struct
from enum import IntEnum


class Category(IntEnum):
    """Kinds of numbers, weakest first: a stronger one wins a promotion."""

    BOOLEAN = 0  #: bool
    INTEGER = 1  #: signed and unsigned
    FLOAT = 2  #: f16, bf16, f32, f64


#: Bits of every element type the translator knows.
BITS = {
    "bool": 1,
    "i8": 8,
    "u8": 8,
    "i16": 16,
    "u16": 16,
    "i32": 32,
    "u32": 32,
    "i64": 64,
    "u64": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
}

#: Spellings of element types in source text (`ct.float32`, `torch.float32`) and their short names.
SPELLINGS = {
    "bool_": "bool",
    "bool": "bool",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "int": "i32",
    "uint32": "u32",
    "int64": "i64",
    "long": "i64",
    "uint64": "u64",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
    "float64": "f64",
    "double": "f64",
}

Number = int | float | bool


def category(dtype: str) -> Category:
    """The kind of numbers that `dtype` holds."""
    if dtype == "bool":
        return Category.BOOLEAN
    return Category.FLOAT if dtype in ("f16", "bf16", "f32", "f64") else Category.INTEGER


def signed(dtype: str) -> bool:
    """Whether an integer type has a sign."""
    return dtype[0] == "i"


def of_constant(value: Number) -> str:
    """The type that a constant has where nothing else decides."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "i32" if -(1 << 31) <= value < (1 << 31) else "i64"
    return "f32"


def promote(left: str, right: str) -> str | None:
    """The common type of two typed values; None where the source language has none."""
    if left == right:
        return left
    a, b = category(left), category(right)
    if a != b:
        return left if a > b else right
    if a is Category.FLOAT:
        return None if {left, right} == {"f16", "bf16"} else max(left, right, key=BITS.__getitem__)
    if signed(left) != signed(right):
        return None
    return max(left, right, key=BITS.__getitem__)


def promote_constant(dtype: str, value: Number) -> str | None:
    """The common type of a typed value and a constant; None when the constant does not fit."""
    loose = of_constant(value)
    if category(loose) > category(dtype):
        return loose
    if category(loose) is category(dtype) is Category.INTEGER and not fits(dtype, int(value)):
        return None
    return dtype


def fits(dtype: str, value: int) -> bool:
    """Whether an integer type holds `value`."""
    low, high = limits(dtype)
    return low <= value <= high


def limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = BITS[dtype]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed(dtype) else (0, (1 << bits) - 1)


def implicit(source: str, target: str) -> bool:
    """Whether a store may convert from `source` to `target` without being asked."""
    return promote(source, target) == target


def exact_f32(value: float) -> bool:
    """Whether `value` survives a conversion to f32 unchanged."""
    if value != value or value in (float("inf"), float("-inf")):
        return True
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False

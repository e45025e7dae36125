"""Constants: exact values of elements, and integer arithmetic on them."""

import math
import re
import struct
from typing import NamedTuple

_INTEGER = re.compile(r"i(\d+)$")
_FORMATS = {"f16": ("e", "H"), "f32": ("f", "I"), "f64": ("d", "Q")}


class Number(NamedTuple):
    """An element's exact value: integers are signed, floats are their bits, other text stays as it is."""

    element: str  #: element type
    value: int | str  #: signed integer, float bits, or text


def width(element: str) -> int | None:
    """Bits of an integer element; None for others."""
    found = _INTEGER.match(element)
    return int(found.group(1)) if found else None


def wrap(value: int, bits: int) -> int:
    """A value modulo 2**bits, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def integer(element: str, value: int) -> Number:
    """An integer constant, wrapped to its width."""
    return Number(element, wrap(value, width(element) or 64))


def read_number(element: str, text: str) -> Number:
    """The constant that an element's text spells."""
    text = text.strip()
    bits = width(element)
    if bits is not None:
        if text in ("true", "false"):
            return integer(element, int(text == "true"))
        return integer(element, int(text, 0))
    if text.startswith("0x"):
        return Number(element, int(text, 16))
    if element in _FORMATS:
        return of_float(element, float(text)) or Number(element, text)
    if element == "bf16":
        single = of_float("f32", float(text))
        value = to_float(single) if single else None
        return (of_float(element, value) if value is not None else None) or Number(element, text)
    return Number(element, text)


def of_float(element: str, value: float) -> Number | None:
    """The nearest (ties to even) constant of a float element; None where this is not known here."""
    if math.isnan(value):
        return None
    if element == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        if struct.unpack("<f", struct.pack("<f", value))[0] != value:
            return None
        bits += 0x7FFF + ((bits >> 16) & 1)
        return Number(element, bits >> 16)
    form = _FORMATS.get(element)
    if form is None:
        return None
    try:
        packed = struct.pack("<" + form[0], value)
    except OverflowError:
        return None
    return Number(element, struct.unpack("<" + form[1], packed)[0])


def to_float(number: Number) -> float | None:
    """The value of a float constant; None for other elements and for NaN."""
    if not isinstance(number.value, int):
        return None
    if number.element == "bf16":
        found = struct.unpack("<f", struct.pack("<I", number.value << 16))[0]
    else:
        form = _FORMATS.get(number.element)
        if form is None:
            return None
        found = struct.unpack("<" + form[0], struct.pack("<" + form[1], number.value))[0]
    value = float(found)
    return None if math.isnan(value) else value


def compare(predicate: str, left: int, right: int) -> bool | None:
    """The outcome of an integer comparison; None for an unknown predicate."""
    return {
        "equal": left == right,
        "not_equal": left != right,
        "less_than": left < right,
        "less_than_or_equal": left <= right,
        "greater_than": left > right,
        "greater_than_or_equal": left >= right,
    }.get(predicate)


def fold_integer(op: str, attrs: tuple[str, ...], element: str, values: list[int]) -> int | None:
    """The value of an integer operation on constants; None where it is not defined or not known here.

    Values are signed; `attrs` are the operation's keywords in order.
    """
    bits = width(element)
    if bits is None:
        return None
    if "unsigned" in attrs:
        values = [value & ((1 << bits) - 1) for value in values]
    if op in ("divi", "remi"):
        return _divide(op, attrs, bits, values)
    if attrs not in ((), ("signed",), ("unsigned",)):
        return None
    if op in ("shli", "shri") and not 0 <= values[1] < bits:
        return None
    left = values[0]
    right = values[-1]
    match op:
        case "addi":
            return left + right
        case "subi":
            return left - right
        case "muli":
            return left * right
        case "andi":
            return left & right
        case "ori":
            return left | right
        case "xori":
            return left ^ right
        case "mini":
            return min(values)
        case "maxi":
            return max(values)
        case "shli":
            return left << right
        case "shri":
            return left >> right
        case "negi":
            return -left
        case _:
            return None


def _divide(op: str, attrs: tuple[str, ...], bits: int, values: list[int]) -> int | None:
    left, right = values
    if right == 0 or (left == -(1 << (bits - 1)) and right == -1):
        return None
    truncated = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    rounding = [attr for attr in attrs if attr not in ("signed", "unsigned")]
    if op == "remi":
        return left - truncated * right if not rounding else None
    match rounding:
        case [] | ["rounding<zero>"]:
            return truncated
        case ["rounding<negative_inf>"]:
            return left // right
        case ["rounding<positive_inf>"]:
            return -(-left // right)
        case _:
            return None

"""One entry for one signature: values of its generics, and arguments as `tilefarm-kc compile` wants them. Pure."""

from collections.abc import Sequence
from typing import Any

from farm.analysis import ArrayArg, ConstantArg, ScalarArg, Signature
from farm.recipes.cutile_rs.plan import (
    ELEMENT_BYTES,
    Entry,
    EntryGeneric,
    EntryParam,
    GenericRole,
    ParamRole,
    Quantity,
    element_promise,
    promise,
)

#: Divisors beyond this are of no use to the compiler.
MOST_DIVISOR = 16


class NotInstantiable(ValueError):
    """The signature lacks an argument that the entry asks for."""


def divisor(value: int) -> int:
    """The largest power of two, at most 16, that divides `value`; 16 for 0."""
    return min(MOST_DIVISOR, value & -value) if value else MOST_DIVISOR


def generic_values(entry: Entry, signature: Signature) -> tuple[str, ...]:
    """The values of the entry's generics, in order. Raises NotInstantiable."""
    args = {arg.name: arg for arg in signature.args}
    return tuple(_generic(generic, args) for generic in entry.generics)


def argument(param: EntryParam, signature: Signature) -> dict[str, Any]:
    """The compile server's record of one runtime argument. Raises NotInstantiable."""
    arg = next((arg for arg in signature.args if arg.name == param.source), None)
    match param.role:
        case ParamRole.POINTER if isinstance(arg, ArrayArg):
            return {"kind": "pointer", "address": arg.address}
        case ParamRole.TENSOR if isinstance(arg, ArrayArg):
            return {
                "kind": "tensor",
                "address": arg.address,
                "shape": list(arg.shape),
                "strides": list(arg.strides),
            }
        case ParamRole.EXTENT if isinstance(arg, ArrayArg) and (param.axis or 0) < len(arg.shape):
            return {"kind": "scalar", "value": arg.shape[param.axis or 0]}
        case ParamRole.STRIDE if isinstance(arg, ArrayArg) and (param.axis or 0) < len(arg.shape):
            return {"kind": "scalar", "value": arg.strides[param.axis or 0]}
        case ParamRole.SCALAR if isinstance(arg, (ScalarArg, ConstantArg)):
            whole = isinstance(arg.value, int) and not isinstance(arg.value, bool)
            return {"kind": "scalar", "value": arg.value} if whole else {"kind": "opaque"}
    axis = "" if param.axis is None else f" {param.axis}"
    raise NotInstantiable(
        f"signature {signature.id} of {signature.kernel} has no {param.role.value} {param.source}{axis}"
    )


def entry_for(entries: Sequence[Entry], signature: Signature) -> Entry | None:
    """The entry that a launch with this signature uses, or None when no entry's conditions hold."""
    for entry in entries:
        if entry.kernel == signature.kernel and all(_holds(text, signature) for text in entry.when):
            return entry
    return None


class _Seen:
    """An array as conditions see it."""

    def __init__(self, arg: ArrayArg) -> None:
        self.shape = arg.shape
        self.element = arg.dtype
        self._strides = arg.strides

    def stride(self, axis: int) -> int:
        """Stride of an axis, elements."""
        return self._strides[axis]


def _holds(text: str, signature: Signature) -> bool:
    names: dict[str, Any] = {"dtype": lambda array: array.element}
    for arg in signature.args:
        names[arg.name] = _Seen(arg) if isinstance(arg, ArrayArg) else arg.value
    # The conditions are the translator's own text, never a candidate's.
    return bool(eval(text, {"__builtins__": {}}, names))


def _generic(generic: EntryGeneric, args: dict[str, Any]) -> str:
    arg = args.get(generic.source)
    match generic.role:
        case GenericRole.ELEMENT:
            if isinstance(arg, ArrayArg):
                return arg.dtype
        case GenericRole.CONSTANT:
            if isinstance(arg, ConstantArg):
                return str(arg.value).lower() if isinstance(arg.value, bool) else str(arg.value)
        case GenericRole.DIVISOR:
            if isinstance(arg, ArrayArg):
                return str(divisor(_quantity(arg, generic.quantity, generic.axis)))
        case GenericRole.PROMISE:
            if isinstance(arg, ArrayArg) and generic.quantity is not None:
                size = ELEMENT_BYTES.get(arg.dtype, 1)
                if generic.quantity is Quantity.ELEMENT:
                    return str(element_promise(arg.address, arg.strides, generic.steps, size))
                value = _quantity(arg, generic.quantity, generic.axis)
                return str(promise(generic.quantity, value, size))
    raise NotInstantiable(f"signature {signature_name(args)} has no {generic.role.value} {generic.source}")


def _quantity(arg: ArrayArg, quantity: Quantity | None, axis: int | None) -> int:
    match quantity:
        case Quantity.POINTER | Quantity.ELEMENT | None:
            return arg.address
        case Quantity.EXTENT:
            return arg.shape[axis or 0]
        case Quantity.STRIDE | Quantity.LONE_STRIDE:
            return arg.strides[axis or 0]


def signature_name(args: dict[str, Any]) -> str:
    """The arguments of a signature, for messages."""
    return f"({', '.join(args)})"

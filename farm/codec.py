"""Frozen dataclasses to JSON and back, strictly, with the standard library alone.

Boxes and GPU runners decode the same artifacts as the workers and have no third-party
packages beyond the toolchain, hence no library here.
"""

import dataclasses
import enum
import functools
import types
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class CodecError(ValueError):
    """A JSON document does not have the shape its type asks for; the message names the place."""


def encode(value: Any) -> Any:
    """JSON-ready form of dataclasses, enums, tuples, lists, dicts, str, int, float, bool, None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise CodecError(f"cannot encode a {type(value).__name__}")


def decode(cls: type[T], data: Any, where: str = "$") -> T:
    """The value of type `cls` that `data` (parsed JSON) describes.

    A union of dataclasses is told apart by a field `kind` whose annotation is a Literal.
    Unknown and missing fields, and values of another type, raise CodecError naming the place.
    """
    result: T = _decode(cls, data, where)
    return result


def _decode(kind: Any, data: Any, where: str) -> Any:
    if kind is Any:
        return data
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(kind), data, where)
    if origin is tuple:
        if not isinstance(data, list):
            raise CodecError(f"{where}: expected a list, got {type(data).__name__}")
        args = get_args(kind)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], item, f"{where}[{i}]") for i, item in enumerate(data))
        if len(args) != len(data):
            raise CodecError(f"{where}: expected {len(args)} items, got {len(data)}")
        return tuple(_decode(a, item, f"{where}[{i}]") for i, (a, item) in enumerate(zip(args, data, strict=True)))
    if origin is dict:
        if not isinstance(data, dict):
            raise CodecError(f"{where}: expected an object, got {type(data).__name__}")
        key_type, value_type = get_args(kind)
        return {_decode(key_type, k, where): _decode(value_type, v, f"{where}.{k}") for k, v in data.items()}
    if origin is not None and str(origin) == "typing.Literal":
        if data not in get_args(kind):
            raise CodecError(f"{where}: expected one of {get_args(kind)}, got {data!r}")
        return data
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, data, where)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(data)
        except ValueError as error:
            raise CodecError(f"{where}: {error}") from None
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if kind is type(None):
        kind = types.NoneType
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise CodecError(f"{where}: expected {kind.__name__}, got {type(data).__name__}")
    return data


def _decode_union(options: tuple[Any, ...], data: Any, where: str) -> Any:
    if isinstance(data, dict) and "kind" in data:
        for option in options:
            if dataclasses.is_dataclass(option):
                hint = get_type_hints(option).get("kind")
                if data["kind"] in get_args(hint):
                    return _decode(option, data, where)
    errors = []
    for option in sorted(options, key=lambda o: o is float):
        try:
            return _decode(option, data, where)
        except CodecError as error:
            errors.append(str(error))
    raise CodecError(f"{where}: fits none of {len(options)} forms: " + "; ".join(errors))


@functools.cache
def _shape(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Types and fields of a dataclass by name; worked out once, since record files have many lines."""
    return get_type_hints(kind), {f.name: f for f in dataclasses.fields(kind)}


def _decode_dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise CodecError(f"{where}: expected an object, got {type(data).__name__}")
    hints, fields = _shape(kind)
    for name in data:
        if name not in fields:
            raise CodecError(f"{where}: unknown field {name!r} of {kind.__name__}")
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _decode(hints[name], data[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise CodecError(f"{where}: field {name!r} of {kind.__name__} is missing")
    return kind(**values)

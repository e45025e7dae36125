"""Tensors that a closure keeps: the memory that stays at its place from call to call."""

import functools
import types
from collections.abc import Iterator
from typing import Any

import torch

_DEEPEST = 6
_MOST = 4096
#: A test class holds its request, and through it the whole session.
_NOT_FOLLOWED = frozenset({"_pytest", "pytest", "pluggy", "logging"})
_PLAIN = torch.Tensor


def reachable(root: Any) -> list[torch.Tensor]:
    """Tensors that `root` holds through cells, bound arguments, defaults, containers and attributes, in order.

    Globals are followed only where the function's code names them and they are tensors or containers.
    """
    found: list[torch.Tensor] = []
    seen: set[int] = set()
    waiting: list[tuple[int, Any]] = [(0, root)]
    while waiting and len(seen) < _MOST:
        depth, value = waiting.pop(0)
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        if isinstance(value, _PLAIN):
            found.append(value)
            if value.is_leaf and value.grad is not None:
                waiting.append((depth + 1, value.grad))
        else:
            waiting.extend((depth + 1, held) for held in _held(value))
    return found


def _held(value: Any) -> Iterator[Any]:
    if isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif code := getattr(value, "__code__", None):
        for cell in getattr(value, "__closure__", None) or ():
            try:
                yield cell.cell_contents
            except ValueError:
                continue
        yield from getattr(value, "__defaults__", None) or ()
        yield from (getattr(value, "__kwdefaults__", None) or {}).values()
        names = getattr(value, "__globals__", {})
        globals_ = (names[name] for name in code.co_names if name in names)
        yield from (held for held in globals_ if isinstance(held, (_PLAIN, list, tuple, dict)))
    elif isinstance(value, torch.nn.Module) or type(value).__module__ not in ("builtins", "torch"):
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[Any]:
    if type(value).__module__.partition(".")[0] in _NOT_FOLLOWED:
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict) and not isinstance(value, type):
        yield from attributes.values()


def leaves(result: Any) -> Iterator[Any]:
    """What is in nested tuples, lists and dicts of a result, in order; None is left out."""
    if isinstance(result, (list, tuple)):
        for part in result:
            yield from leaves(part)
    elif isinstance(result, dict):
        for part in result.values():
            yield from leaves(part)
    elif result is not None:
        yield result


def map_tensors(value: Any, change: Any) -> Any:
    """The same nested containers with `change(tensor)` in place of each tensor."""
    if isinstance(value, _PLAIN):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(part, change) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(part, change) for part in value)
    if isinstance(value, dict):
        return {key: map_tensors(part, change) for key, part in value.items()}
    return value

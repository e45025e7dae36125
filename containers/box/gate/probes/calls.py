"""Calls of the op, as data: what a test passed, free of the process in which it was passed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

#: Key that marks a node of an encoded argument; what else an argument may hold is JSON.
_KIND = "@"


class UnportableArgument(ValueError):
    """An argument is an object of the repository, so the call cannot be made in another process."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One tensor among the arguments. A tensor that is passed twice is one slot."""

    name: str  #: as a reader would write it, e.g. `x` or `group_a[1]`
    data: torch.Tensor  #: on the CPU, contiguous
    strides: tuple[int, ...]  #: elements, as passed
    offset: int = 0  #: elements between the aligned start of memory and the tensor's own start
    wants_grad: bool = False


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a function of the registry; with `factory`, of the function that this one returned."""

    key: str  #: the row that made it
    position: int  #: among the calls kept of the row
    name: str  #: in the registry
    factory: Any  #: None, or the encoded (args, kwargs) of the registry's own function
    args: Any  #: encoded tuple
    kwargs: Any  #: encoded dict
    slots: tuple[Slot, ...]
    backward: bool  #: whether the row went back through the result

    @property
    def id(self) -> str:
        """Names the call within its subject."""
        return f"{self.key}/{self.position}"

    @property
    def elements(self) -> int:
        """Elements of all tensors."""
        return sum(slot.data.numel() for slot in self.slots)


class Slots:
    """Gives the tensors of one call their slots while its arguments are encoded."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.names: list[str] = []

    def take(self, tensor: torch.Tensor, name: str) -> int:
        """The slot of a tensor: that of an equal view of the same memory, or a new one."""
        found = self.find(tensor)
        if found is not None:
            return found
        self.tensors.append(tensor)
        self.names.append(name)
        return len(self.tensors) - 1

    def find(self, tensor: torch.Tensor) -> int | None:
        """The slot of this tensor, or of one that is the same view of the same memory; None: there is none."""
        for index, known in enumerate(self.tensors):
            if known is tensor or (tensor.numel() and _place(known) == _place(tensor)):
                return index
        return None


def encode(value: Any, slots: Slots, name: str) -> Any:
    """The argument with tensors replaced by slots. Raises UnportableArgument, naming the type."""
    if isinstance(value, torch.Tensor):
        return {_KIND: "slot", "index": slots.take(value, name)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value if type(value) in (type(None), bool, int, float, str) else _unportable(value)
    if isinstance(value, torch.dtype):
        return {_KIND: "dtype", "name": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {_KIND: "device"}
    if type(value) in (tuple, list, torch.Size):
        items = [encode(item, slots, f"{name}[{i}]") for i, item in enumerate(value)]
        return {_KIND: "list" if type(value) is list else "tuple", "items": items}
    if type(value) is dict:
        return {_KIND: "dict", "items": [[k, encode(v, slots, f"{name}[{k!r}]")] for k, v in value.items()]}
    return _unportable(value)


def decode(node: Any, tensors: Sequence[Any], device: torch.device) -> Any:
    """The inverse of `encode`, with `tensors` in the slots; devices become `device`."""
    if not isinstance(node, dict):
        return node
    match node[_KIND]:
        case "slot":
            return tensors[node["index"]]
        case "dtype":
            return getattr(torch, node["name"])
        case "device":
            return device
        case "dict":
            return {key: decode(item, tensors, device) for key, item in node["items"]}
        case "list":
            return [decode(item, tensors, device) for item in node["items"]]
        case "tuple":
            return tuple(decode(item, tensors, device) for item in node["items"])
        case kind:
            raise ValueError(f"no argument is of kind {kind!r}")


def map_numbers(node: Any, change: Callable[[int], int]) -> Any:
    """The encoded argument with each integer (no bool, no slot) changed."""
    if isinstance(node, int) and not isinstance(node, bool):
        return change(node)
    if isinstance(node, dict) and node[_KIND] == "dict":
        return {**node, "items": [[key, map_numbers(item, change)] for key, item in node["items"]]}
    if isinstance(node, dict) and "items" in node:
        return {**node, "items": [map_numbers(item, change) for item in node["items"]]}
    return node


def to_plain(call: Call) -> dict[str, Any]:
    """A form that `torch.save` writes and `torch.load(weights_only=True)` reads."""
    return {**vars(call), "slots": [vars(slot) for slot in call.slots]}


def from_plain(plain: dict[str, Any]) -> Call:
    """The inverse of `to_plain`."""
    slots = tuple(Slot(**{**slot, "strides": tuple(slot["strides"])}) for slot in plain["slots"])
    return Call(**{**plain, "slots": slots})


def save(file: Path, plain: Any) -> None:
    """Write a tree of plain values and tensors whole: the file is there complete or not at all."""
    partial = file.with_name(file.name + ".partial")
    torch.save(plain, partial)
    partial.rename(file)


def load(file: Path) -> Any:
    """Read what `save` wrote; no code in the file can run."""
    return torch.load(file, map_location="cpu", weights_only=True)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a contiguous tensor, as torch counts them (an axis of 0 counts as 1)."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _unportable(value: Any) -> Any:
    raise UnportableArgument(f"a {type(value).__module__}.{type(value).__qualname__}")

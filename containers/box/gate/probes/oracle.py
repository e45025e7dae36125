"""Exact results: a row's own reference function, or the registry's `pytorch` one, computed in float64."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from containers.box.gate.probes.attempt import flatten, wants_backward
from containers.box.gate.probes.calls import Slots, UnportableArgument, decode, encode
from containers.box.gate.probes.cases import Case, cotangent_for
from containers.box.gate.probes.ulp import wide

#: Methods that convert to a type which their name says.
_CASTS = frozenset({"float", "half", "bfloat16", "double"})


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A function that a row compares the op with, and how it is called with the tensors of the op's call."""

    function: Callable[..., Any]
    args: Any  #: encoded tuple over the slots of the op's call
    kwargs: Any  #: encoded dict
    result: int | None = None  #: which of the op's results it gives; None: all, in order
    own: int | None = None  #: which of its own results that is


class InDoubles(TorchFunctionMode):
    """Within it nothing is rounded to a type below float64: casts to one are casts to float64.

    Tensors of lower types that a function meets (constants, what it closed over) are widened as well.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in _CASTS:
            return wide(args[0])
        in_place = name.startswith(("__setitem", "__i")) or (name.endswith("_") and not name.endswith("__"))
        wider = tuple(_widened(arg, keep=in_place and i == 0) for i, arg in enumerate(args))
        named = {key: _widened(value, keep=key == "out") for key, value in (kwargs or {}).items()}
        return func(*wider, **named)


def reference_from(
    function: Callable[..., Any],
    kwargs: Mapping[str, Any],
    slots: Slots,
    result: int | None,
    own: int | None,
) -> Reference | None:
    """The reference in terms of a call's slots; None where it gets a tensor that the op did not, or an object."""
    known = len(slots.tensors)
    try:
        encoded = encode(dict(kwargs), slots, "")
    except UnportableArgument:
        return None
    if len(slots.tensors) > known:
        del slots.tensors[known:], slots.names[known:]
        return None
    empty = encode((), slots, "")
    return Reference(function=function, args=empty, kwargs=encoded, result=result, own=own)


def exact(
    reference: Reference, case: Case, device: torch.device, results: Sequence[tuple[str, torch.dtype]]
) -> dict[str, torch.Tensor]:
    """Results by place in float64 on the CPU; `results` has places and dtypes of what the source gave.

    Gradients are those for the same gradient that both sides get, rounded to the type of their result.
    Whatever the reference raises is raised.
    """
    back = wants_backward(case)
    tensors = []
    for slot in case.call.slots:
        tensor = slot.data.to(device)
        tensor = wide(tensor) if tensor.is_floating_point() else tensor
        tensors.append(tensor.requires_grad_(slot.wants_grad and back))
    args, kwargs = decode(reference.args, tensors, device), decode(reference.kwargs, tensors, device)
    torch.manual_seed(case.seed)
    with torch.set_grad_enabled(back), InDoubles():
        given, _ = flatten(reference.function(*args, **kwargs))
    places = [(place, dtype) for place, dtype in results if place.startswith("result ")]
    if not places:
        places = [(place, dtype) for place, dtype in results if place.startswith("argument ")]
    if reference.own is not None:
        given = given[reference.own : reference.own + 1]
    if reference.result is not None:
        places = places[reference.result : reference.result + 1]
    if len(given) != len(places):
        return {}
    found = {place: wide(tensor.detach().cpu()) for (place, _), tensor in zip(places, given, strict=True)}
    if back and any(place.startswith("gradient ") for place, _ in results):
        found |= _gradients(case, tensors, given, places)
    return found


def _gradients(
    case: Case, tensors: list[torch.Tensor], given: list[torch.Tensor], places: list[tuple[str, torch.dtype]]
) -> dict[str, torch.Tensor]:
    outputs, cotangents = [], []
    for tensor, (place, dtype) in zip(given, places, strict=True):
        if tensor.requires_grad and place.startswith("result "):
            position = int(place.split()[1])
            like = torch.empty(tensor.shape, dtype=dtype, device=tensor.device)
            outputs.append(tensor)
            cotangents.append(wide(cotangent_for(case, position, like)))
    wanted = [(slot.name, t) for slot, t in zip(case.call.slots, tensors, strict=True) if t.requires_grad]
    if not outputs or not wanted:
        return {}
    grads = torch.autograd.grad(outputs, [t for _, t in wanted], cotangents, allow_unused=True)
    return {
        f"gradient of {name}": grad.cpu()
        for (name, _), grad in zip(wanted, grads, strict=True)
        if grad is not None
    }


def _widened(value: Any, *, keep: bool = False) -> Any:
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else value
    if isinstance(value, torch.Tensor):
        low = value.is_floating_point() and value.dtype is not torch.float64
        return value if keep or not low else wide(value)
    if type(value) in (tuple, list):
        return type(value)(_widened(item, keep=keep) for item in value)
    return value

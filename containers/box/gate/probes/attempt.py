"""One case on one side: called twice, over poisoned memory, with arguments between guards.

On a GPU another call comes first and is thrown away: it compiles and tunes, and a tuner computes the result many
times over, so that memory in which nothing is written may hold it.
"""

from collections.abc import Callable
from typing import Any

import torch

from containers.box.gate.probes.calls import decode
from containers.box.gate.probes.cases import Case, cotangent_for
from containers.box.gate.probes.layouts import place
from containers.box.gate.probes.memory import BESIDE, poison

Function = Callable[..., Any]

#: The call whose results do not count; its patterns are those of the last one.
_WARM_UP = -1


def attempt(function: Function, case: Case, device: torch.device) -> dict[str, Any]:
    """What the case gives, in the form that `compare.from_saved` reads. The call's exceptions are part of it."""
    once: dict[str, Any] | None = None
    for turn in (_WARM_UP, 0, 1) if device.type == "cuda" else (0, 1):
        try:
            this = _once(function, case, device, turn)
        except Exception as error:
            again = "" if once is None else "the second time: "
            return _failed(f"{again}{type(error).__name__}: {_line(error)}", device)
        if turn != _WARM_UP:
            once = this if once is None else _joined(once, this)
    assert once is not None
    return once


def resolve(registry: dict[str, dict[str, Function]], case: Case, backend: str, device: torch.device) -> Function:
    """The function that the case calls. Raises KeyError where the backend has none of that name."""
    function = registry[case.call.name][backend]
    if case.call.factory is None:
        return function
    args, kwargs = decode(case.call.factory, (), device)
    made: Function = function(*args, **kwargs)
    return made


def flatten(value: Any) -> tuple[list[torch.Tensor], list[Any]]:
    """The tensors in a returned value, depth first, and the rest."""
    if isinstance(value, torch.Tensor):
        return [value], []
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [], [value]
    tensors, others = [], []
    for item in value:
        inner, rest = flatten(item)
        tensors += inner
        others += rest
    return tensors, others


def wants_backward(case: Case) -> bool:
    """Whether the row went back and there is an argument to go back to."""
    return case.call.backward and any(slot.wants_grad for slot in case.call.slots)


def _once(function: Function, case: Case, device: torch.device, turn: int) -> dict[str, Any]:
    placed = [place(slot, device, BESIDE[turn]) for slot in case.call.slots]
    before = [item.tensor.detach().clone() for item in placed]
    tensors = [item.tensor for item in placed]
    args, kwargs = decode(case.call.args, tensors, device), decode(case.call.kwargs, tensors, device)
    torch.manual_seed(case.seed)
    poison(device, turn)
    with torch.set_grad_enabled(any(slot.wants_grad for slot in case.call.slots)):
        returned, others = flatten(function(*args, **kwargs))
    _wait(device)
    # Copied before the way back, which may write over what the way there gave.
    results = [_result(f"result {i}", tensor) for i, tensor in enumerate(returned)]
    if wants_backward(case):
        results += _gradients(case, returned, tensors)
        _wait(device)
    names = [slot.name for slot in case.call.slots]
    changed = [i for i, item in enumerate(placed) if not _same(item.tensor, before[i])]
    results += [_result(f"argument {names[i]}", tensors[i]) for i in changed]
    return {
        "raised": None,
        "results": results,
        "others": repr([other for other in others if other is not None]),
        "changed": [names[i] for i in changed],
        "beside": [name for name, item in zip(names, placed, strict=True) if not item.guards_intact()],
        "filled": device.type,
    }


def _gradients(case: Case, returned: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[dict[str, Any]]:
    """The arguments' gradients for a fixed gradient of every result that can go back; none: none can."""
    back = [
        (i, tensor) for i, tensor in enumerate(returned) if tensor.requires_grad and tensor.is_floating_point()
    ]
    if not back:
        return []
    torch.autograd.backward([t for _, t in back], [cotangent_for(case, i, t) for i, t in back])
    gradients = []
    for slot, tensor in zip(case.call.slots, tensors, strict=True):
        if slot.wants_grad and tensor.grad is not None:
            gradients.append(_result(f"gradient of {slot.name}", tensor.grad))
    return gradients


def _result(place: str, tensor: torch.Tensor) -> dict[str, Any]:
    return {
        "place": place,
        "tensor": tensor.detach().cpu().contiguous().clone(),
        "again": None,
        "stride": tuple(tensor.stride()),
        "requires_grad": tensor.requires_grad,
        "type": type(tensor).__name__,
    }


def _joined(once: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    second = {item["place"]: item["tensor"] for item in again["results"]}
    return {
        **once,
        "results": [{**item, "again": second.get(item["place"])} for item in once["results"]],
        "changed": sorted({*once["changed"], *again["changed"]}),
        "beside": sorted({*once["beside"], *again["beside"]}),
    }


def _failed(reason: str, device: torch.device) -> dict[str, Any]:
    return {
        "raised": reason[:500],
        "results": [],
        "others": "[]",
        "changed": [],
        "beside": [],
        "filled": device.type,
    }


def _same(tensor: torch.Tensor, before: torch.Tensor) -> bool:
    # Values alone are not enough: NaN is not equal to itself, and -0 is equal to 0.
    one, other = (t.detach().contiguous().view(-1).view(torch.uint8) for t in (tensor, before))
    return torch.equal(one, other)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""

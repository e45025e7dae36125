"""Null kernels: what an op would give that computed nothing. A row that lets one pass proves nothing."""

from collections.abc import Iterator
from typing import Any

import torch

Key = tuple[tuple[int, ...], torch.dtype]


class Null:
    """Overwrites an op's results and gradients in one row, where it has something to put there.

    zeros: all zero. mean: all equal to the mean of the true result. input: the first argument of the same
    shape and dtype. last: the true result of the call before with the same shape and dtype. Gradients are
    their own mean for `mean` and zero otherwise.
    """

    def __init__(self, name: str, last: dict[Key, torch.Tensor]) -> None:
        self._name = name
        self._last = last
        self._calls = 0
        self._replaced = 0

    @property
    def unfit(self) -> str | None:
        """Why it says nothing about this row: it fits none of the results."""
        none_fits = self._calls > 0 and self._replaced == 0
        return f"no null `{self._name}` fits the op's results" if none_fits else None

    def before(self, arguments: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The arguments with copies of their values before the call."""
        return [(tensor, tensor.detach().clone()) for tensor in tensors(arguments)]

    @torch.no_grad()
    def after(self, result: Any, before: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Overwrite what the call gave: the tensors in its result, and arguments that it changed."""
        outputs = list(tensors(result))
        places = {tensor.data_ptr() for tensor in outputs}
        changed = [(arg, was) for arg, was in before if arg.data_ptr() not in places and not _same(arg, was)]
        values = [self._value(out, [was for _, was in before]) for out in outputs]
        if self._name == "input":
            values += [was for _, was in changed]
        else:
            values += [self._value(arg, []) for arg, _ in changed]
        targets = [*outputs, *(arg for arg, _ in changed)]
        truths = [target.detach().clone() for target in targets] if self._name == "last" else []
        self._calls += 1
        for target, value in zip(targets, values, strict=True):
            if value is not None:
                target.data.copy_(value)
                self._replaced += 1
        for truth in truths:
            self._last[_key(truth)] = truth

    def gradient(self, gradient: torch.Tensor | None) -> torch.Tensor | None:
        """What stands for a gradient that the op gives."""
        if gradient is None or self._replaced == 0:
            return gradient
        if self._name == "mean" and gradient.numel() > 1:
            return torch.full_like(gradient, float(gradient.double().mean()))
        return torch.zeros_like(gradient)

    def _value(self, out: torch.Tensor, inputs: list[torch.Tensor]) -> torch.Tensor | None:
        match self._name:
            case "zeros":
                return torch.zeros_like(out)
            case "mean":
                plain = out.dtype.is_floating_point and out.numel() > 1
                return torch.full_like(out, float(out.double().mean())) if plain else None
            case "input":
                return next((was for was in inputs if _key(was) == _key(out)), None)
            case "last":
                last = self._last.get(_key(out))
                return None if last is None or _same(last, out) else last
            case _:
                raise ValueError(f"no null is called {self._name}")


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)


def _key(tensor: torch.Tensor) -> Key:
    return tuple(tensor.shape), tensor.dtype


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal in all bits that count; NaN equals NaN."""
    if one.dtype.is_floating_point:
        return bool(((one == other) | (one.isnan() & other.isnan())).all())
    return bool((one == other).all())

"""Fresh inputs at the same addresses: the original values, rolled by an amount that the seed decides."""

from dataclasses import dataclass

import torch

from containers.box.gate.timing.same import EPSILON

_INTEGER = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_copy, _clone, _equal, _isfinite, _empty = (
    torch.Tensor.copy_,
    torch.Tensor.clone,
    torch.equal,
    torch.isfinite,
    torch.empty,
)


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """A storage, as integers of its elements' width, so that rolling moves bits and nothing else."""

    flat: torch.Tensor
    saved: torch.Tensor
    rolls: bool  #: floating and finite; masks of infinities and integers are kept as they are
    dtype: torch.dtype


class Inputs:
    """All storages of some tensors on one device."""

    def __init__(self, tensors: list[torch.Tensor], device: str) -> None:
        self._memories: list[_Memory] = []
        seen: set[int] = set()
        for tensor in tensors:
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type != device:
                continue
            storage = tensor.untyped_storage()
            if storage.data_ptr() in seen or storage.nbytes() == 0 or tensor.dtype.itemsize not in _INTEGER:
                continue
            seen.add(storage.data_ptr())
            self._memories.append(_memory(tensor))

    @property
    def count(self) -> int:
        """Storages under control."""
        return len(self._memories)

    @property
    def coarsest(self) -> str | None:
        """Name of the coarsest floating dtype."""
        names = [str(memory.dtype).removeprefix("torch.") for memory in self._memories]
        return max((name for name in names if name in EPSILON), key=lambda name: EPSILON[name], default=None)

    def refill(self, seed: int) -> None:
        """Write the values of `seed`; anything that a call changed is undone."""
        for index, memory in enumerate(self._memories):
            count = memory.saved.numel()
            shift = _shift(seed, index, count) if memory.rolls else 0
            if shift == 0:
                _copy(memory.flat, memory.saved)
            else:
                _copy(memory.flat[:shift], memory.saved[count - shift :])
                _copy(memory.flat[shift:], memory.saved[: count - shift])

    def changed(self, seed: int) -> tuple[int, ...]:
        """Storages that do not hold the values of `seed` any more, by position."""
        after = [_clone(memory.flat) for memory in self._memories]
        self.refill(seed)
        pairs = enumerate(zip(after, self._memories, strict=True))
        found = tuple(index for index, (then, memory) in pairs if not _equal(then, memory.flat))
        for then, memory in zip(after, self._memories, strict=True):
            _copy(memory.flat, then)
        return found

    def tensor(self, index: int) -> torch.Tensor:
        """A storage as a flat tensor of its own dtype."""
        memory = self._memories[index]
        return memory.flat.view(memory.dtype)


def _memory(tensor: torch.Tensor) -> _Memory:
    storage = tensor.untyped_storage()
    width = tensor.dtype.itemsize
    flat = _empty(0, dtype=_INTEGER[width], device=tensor.device)
    flat.set_(storage, 0, (storage.nbytes() // width,), (1,))
    rolls = tensor.dtype.is_floating_point
    if rolls:
        values = flat.view(tensor.dtype)
        rolls = bool(_isfinite(values if width > 1 else values.float()).all())
    return _Memory(flat=flat, saved=_clone(flat), rolls=rolls, dtype=tensor.dtype)


def _shift(seed: int, index: int, count: int) -> int:
    return 0 if count < 2 else 1 + (seed * 2654435761 + index * 40503) % (count - 1)

"""Where a tensor lies in memory: strides for the variants, and placement between guards."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from containers.box.gate.probes.calls import Slot, contiguous_strides

#: Bytes before and after each argument that belong to nobody; a multiple of the allocator's 512.
GUARD = 4096


def transposed(shape: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of a tensor stored with its last two axes exchanged; None: it has only one axis."""
    if len(shape) < 2:
        return None
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return ordered(shape, order)


def sliced(shape: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of `wider[..., :n]` where rows are 3 elements longer; None: it has only one axis."""
    if len(shape) < 2:
        return None
    return (*contiguous_strides([*shape[:-1], shape[-1] + 3])[:-1], 1)


def stepped(shape: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of `wider[..., ::2]`; None: it has no axis."""
    return tuple(2 * stride for stride in contiguous_strides(shape)) or None


def ordered(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Dense strides with axes stored in `order`, the slowest first."""
    packed = contiguous_strides([shape[axis] for axis in order])
    strides = dict(zip(order, packed, strict=True))
    return tuple(strides[axis] for axis in range(len(shape)))


def like(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Dense strides for `shape` with its axes in the order that `strides` store them."""
    return ordered(shape, sorted(range(len(shape)), key=lambda axis: -strides[axis]))


#: Layouts that the probes try, by name.
LAYOUTS: dict[str, Callable[[Sequence[int]], tuple[int, ...] | None]] = {
    "transposed": transposed,
    "sliced": sliced,
    "step 2": stepped,
}


@dataclass(frozen=True, kw_only=True)
class Placed:
    """An argument in memory of its own, surrounded by a pattern."""

    tensor: torch.Tensor  #: what the op gets
    memory: torch.Tensor  #: all bytes, guards and gaps included
    start: int  #: byte at which the tensor's own range begins
    end: int
    pattern: int

    def guards_intact(self) -> bool:
        """Whether nobody wrote before the tensor's first or after its last element; gaps inside do not count."""
        return not bool((self.memory[: self.start] != self.pattern).any()) and not bool(
            (self.memory[self.end :] != self.pattern).any()
        )


def place(slot: Slot, device: torch.device, pattern: int) -> Placed:
    """The slot's values on the device, with its strides, between guards and with gaps of bytes `pattern`."""
    size = slot.data.element_size()
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(slot.data.shape, slot.strides, strict=True))
    span = span if slot.data.numel() else 0
    start = GUARD + slot.offset * size
    total = math.ceil((start + span * size + GUARD) / 512) * 512
    memory = torch.full((total,), pattern, dtype=torch.uint8, device=device)
    tensor = memory.view(slot.data.dtype).as_strided(slot.data.shape, slot.strides, start // size)
    tensor.copy_(slot.data)
    if slot.wants_grad:
        tensor.requires_grad_()
    return Placed(tensor=tensor, memory=memory, start=start, end=start + span * size, pattern=pattern)

"""A probe's inputs: a captured call with something about it changed."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import torch

from containers.box.gate.probes.calls import Call, Slot, from_plain, to_plain
from farm.measured.records import ProbeKind

#: How the gradient that goes into the backward pass lies in memory.
COTANGENTS = ("plain", "expanded", "transposed")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What both sides are called with."""

    kind: ProbeKind
    name: str
    call: Call
    cotangent: str = "plain"  #: one of COTANGENTS

    @property
    def seed(self) -> int:
        """Of everything random about the case: from the row and the names, so equal everywhere and always."""
        return seed_of(self.call.id, self.kind, self.name)


def seed_of(*parts: str) -> int:
    """A seed of 63 bits that follows from the parts alone."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:8], "big") >> 1


def generator(*parts: str) -> torch.Generator:
    """A generator on the CPU that follows from the parts alone."""
    return torch.Generator().manual_seed(seed_of(*parts))


def with_data(call: Call, data: dict[int, torch.Tensor]) -> Call:
    """The call with other values, of the same shapes, in some slots."""
    slots = tuple(
        replace(slot, data=data[i].contiguous()) if i in data else slot for i, slot in enumerate(call.slots)
    )
    return replace(call, slots=slots)


def with_slots(call: Call, slots: dict[int, Slot]) -> Call:
    """The call with some slots replaced."""
    return replace(call, slots=tuple(slots.get(i, slot) for i, slot in enumerate(call.slots)))


def floating(call: Call) -> list[int]:
    """Slots whose values can be any number: those that are not indices or masks, nor empty."""
    return [i for i, slot in enumerate(call.slots) if slot.data.is_floating_point() and slot.data.numel()]


def cotangent_for(case: Case, position: int, like: torch.Tensor) -> torch.Tensor:
    """The gradient for result `position`, of `like`'s shape, dtype and device.

    Standard normal values, made on the CPU in float32. Expanded: one value for all elements, with strides of 0,
    as `sum().backward()` gives. Transposed: last two axes stored in exchange.
    """
    made = generator(str(case.seed), "cotangent", str(position))
    if case.cotangent == "expanded":
        value = torch.randn((), generator=made).to(like.dtype).to(like.device)
        return value.expand(like.shape)
    values = torch.randn(tuple(like.shape), generator=made).to(like.dtype).to(like.device)
    if case.cotangent == "transposed" and values.dim() >= 2:
        return values.transpose(-1, -2).contiguous().transpose(-1, -2)
    return values


def case_to_plain(case: Case) -> dict[str, Any]:
    """A form for `calls.save`."""
    return {"kind": case.kind.value, "name": case.name, "cotangent": case.cotangent, "call": to_plain(case.call)}


def case_from_plain(plain: dict[str, Any]) -> Case:
    """The inverse of `case_to_plain`."""
    return Case(**{**plain, "kind": ProbeKind(plain["kind"]), "call": from_plain(plain["call"])})

"""Other shapes for a captured call, and other layouts of its arguments.

Axes of equal extent are taken for the same axis of the problem and change together, with integers among the
arguments that equal it. Where that guess is wrong the source refuses, and the probe says nothing.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

import torch

from containers.box.gate.probes.calls import Call, Slot, map_numbers
from containers.box.gate.probes.cases import Case, generator, with_slots
from containers.box.gate.probes.layouts import LAYOUTS, like
from farm.measured.records import ProbeKind

#: Extents off any list: odd ones, tiny ones, and the neighbours of powers of two; even ones for ops that halve.
EXTENTS = (7, 34, 1, 257, 3, 130, 2, 65, 33, 63, 1000, 5, 127, 6)
#: A changed call may have so many times the elements of the captured one, or SMALL_CALL, whichever is more.
GROWTH = 2
SMALL_CALL = 1 << 18


def extents(call: Call) -> list[int]:
    """The extents of the call's axes, the most common first; 1 is left out (it may stand for any)."""
    counts = Counter(extent for slot in call.slots for extent in slot.data.shape if extent > 1)
    return [extent for extent, _ in sorted(counts.items(), key=lambda item: (-item[1], -item[0]))]


def shapes(call: Call) -> Iterator[Case]:
    """One extent changed at a time, the extents in turn; now and then all at once, to odd ones or to even."""
    known = extents(call)
    turns = [_changes(call, extent) for extent in known]
    together = iter((7, 129, 3, 6, 33, 1)) if len(turns) > 1 else iter(())
    for group in zip_longest(*turns):
        start = next(together, None)
        if start is not None:
            yield from _case(call, {old: start + 2 * i for i, old in enumerate(known)}, ProbeKind.SHAPE)
        yield from (case for case in group if case is not None)


def empties(call: Call) -> Iterator[Case]:
    """An axis without elements, and one with one; edge values of a shape."""
    for extent in extents(call)[:3]:
        yield from _case(call, {extent: 0}, ProbeKind.EDGE)
        yield from _case(call, {extent: 1}, ProbeKind.EDGE)


def strided(call: Call) -> Iterator[Case]:
    """The same values in memory laid out otherwise: all arguments at once, then one at a time."""
    every = [i for i, slot in enumerate(call.slots) if slot.data.numel() > 1]
    for name, lay in LAYOUTS.items():
        yield from _laid(call, f"{name}, all", {i: lay(call.slots[i].data.shape) for i in every})
    yield from _moved(call, "misaligned by one element, all", every)
    if call.backward:
        for cotangent in ("expanded", "transposed"):
            yield Case(kind=ProbeKind.STRIDED, name=f"gradient {cotangent}", call=call, cotangent=cotangent)
    for i in every[:4] if len(every) > 1 else ():
        for name, lay in LAYOUTS.items():
            yield from _laid(call, f"{name}, {call.slots[i].name}", {i: lay(call.slots[i].data.shape)})
        yield from _moved(call, f"misaligned by one element, {call.slots[i].name}", [i])


def shrunk(call: Call, most: int) -> Call:
    """The call with its largest extents halved until it has at most `most` elements."""
    while call.elements > most:
        largest = max(extents(call), default=0)
        if largest < 2:
            return call
        smaller = resized(call, {largest: largest // 2})
        if smaller is None or smaller.elements >= call.elements:
            return call
        call = smaller
    return call


def resized(call: Call, change: dict[int, int]) -> Call | None:
    """The call with extents changed everywhere; None: no axis has such an extent, or it becomes too large."""
    slots = {i: _resize(call, i, slot, change) for i, slot in enumerate(call.slots)}
    if all(slots[i] is slot for i, slot in enumerate(call.slots)):
        return None

    def number(value: int) -> int:
        return change.get(value, value)

    changed = with_slots(call, slots)
    return replace(changed, args=map_numbers(call.args, number), kwargs=map_numbers(call.kwargs, number))


def _changes(call: Call, old: int) -> Iterator[Case]:
    near = [new for new in (old + 1, old - 1, old + 2, old - 2) if new > 1]
    candidates = [new for pair in zip_longest(EXTENTS[:6], near[:2]) for new in pair] + [*near[2:], *EXTENTS[6:]]
    for new in dict.fromkeys(new for new in candidates if new is not None and new != old):
        yield from _case(call, {old: new}, ProbeKind.SHAPE)


def _case(call: Call, change: dict[int, int], kind: ProbeKind) -> Iterator[Case]:
    most = max(GROWTH * call.elements, SMALL_CALL)
    planned = sum(_elements(slot, change) for slot in call.slots)
    changed = resized(call, change) if planned <= most else None
    if changed is not None:
        text = ", ".join(f"{old} -> {new}" for old, new in change.items())
        yield Case(kind=kind, name=f"axis {text}", call=changed)


def _elements(slot: Slot, change: dict[int, int]) -> int:
    product = 1
    for extent in slot.data.shape:
        product *= change.get(extent, extent)
    return product


def _resize(call: Call, index: int, slot: Slot, change: dict[int, int]) -> Slot:
    """The slot with its values repeated or cut, and then, where they are numbers, put in random order.

    Integers stay below an extent that they were below before: they are often indices into it.
    """
    shape = tuple(change.get(extent, extent) for extent in slot.data.shape)
    if shape == tuple(slot.data.shape):
        return _clamped(slot, change)
    data = slot.data
    for axis, extent in enumerate(shape):
        if extent != data.shape[axis]:
            data = data.index_select(axis, torch.arange(extent) % max(data.shape[axis], 1))
    if data.is_floating_point():
        order = torch.randperm(data.numel(), generator=generator(call.id, str(change), str(index)))
        data = data.flatten()[order].reshape(shape)
    return _clamped(replace(slot, data=data.contiguous(), strides=like(slot.strides, shape)), change)


def _clamped(slot: Slot, change: dict[int, int]) -> Slot:
    if slot.data.is_floating_point() or slot.data.dtype is torch.bool or slot.data.is_complex():
        return slot
    data = slot.data
    for old, new in change.items():
        if new < old and data.numel() and int(data.max()) <= old:
            data = data.clamp(max=new if int(data.max()) == old else max(new - 1, 0))
    return slot if data is slot.data else replace(slot, data=data)


def _laid(call: Call, name: str, strides: dict[int, tuple[int, ...] | None]) -> Iterator[Case]:
    slots = {i: replace(call.slots[i], strides=chosen) for i, chosen in strides.items() if chosen is not None}
    if any(slots[i].strides != call.slots[i].strides for i in slots):
        yield Case(kind=ProbeKind.STRIDED, name=name, call=with_slots(call, slots))


def _moved(call: Call, name: str, which: list[int]) -> Iterator[Case]:
    if which:
        slots = {i: replace(call.slots[i], offset=1) for i in which}
        yield Case(kind=ProbeKind.STRIDED, name=name, call=with_slots(call, slots))

"""Other values for a captured call: SEED and EDGE. Shapes, layouts, indices and masks stay as they are."""

import math
from collections.abc import Callable, Iterator

import torch

from containers.box.gate.probes.calls import Call
from containers.box.gate.probes.cases import Case, floating, generator, with_data
from farm.measured.records import ProbeKind

#: From the captured values (float64), their type's limits and a generator: new values of the same shape.
Fill = Callable[[torch.Tensor, torch.finfo, torch.Generator], torch.Tensor]
#: Special values, from a type's limits.
Specials = Callable[[torch.finfo], tuple[float, ...]]


def seeds(call: Call) -> Iterator[Case]:
    """The captured values in other places, and values drawn anew with their mean, deviation and range."""
    slots = floating(call)
    for name, fill in SEEDS.items() if slots else ():
        yield _filled(call, ProbeKind.SEED, name, fill, slots)


def edges(call: Call) -> Iterator[Case]:
    """Special values sprinkled over every second row, or in place of all values; NaN in one argument at a time."""
    slots = floating(call)
    for name, fill in EDGES.items() if slots else ():
        yield _filled(call, ProbeKind.EDGE, name, fill, slots)
    for index in slots[:4] if len(slots) > 1 else ():
        yield _filled(call, ProbeKind.EDGE, f"nan in {call.slots[index].name}", EDGES["nan"], [index])


def exp_overflow(info: torch.finfo) -> float:
    """The largest x whose exp is finite in the type: 88.7 for float32, 11.09 for float16."""
    return math.log(info.max)


def _filled(call: Call, kind: ProbeKind, name: str, fill: Fill, slots: list[int]) -> Case:
    data = {}
    for index in slots:
        values = call.slots[index].data
        info = torch.finfo(values.dtype)
        made = fill(values.to(torch.float32).to(torch.float64), info, generator(call.id, name, str(index)))
        # Conversion to fp8 saturates or not, depending on the version: what is finite stays so.
        finite = made.clamp(info.min, info.max)
        data[index] = torch.where(made.isfinite(), finite, made).reshape(values.shape).to(values.dtype)
    return Case(kind=kind, name=name, call=with_data(call, data))


def _permuted(values: torch.Tensor, info: torch.finfo, made: torch.Generator) -> torch.Tensor:
    return values.flatten()[torch.randperm(values.numel(), generator=made)]


def _rolled(values: torch.Tensor, info: torch.finfo, made: torch.Generator) -> torch.Tensor:
    return values.flatten().roll(1 + values.numel() // 3)


def _redrawn(values: torch.Tensor, info: torch.finfo, made: torch.Generator) -> torch.Tensor:
    """Normal values, clipped to the captured range: what was never negative stays so."""
    finite = values[values.isfinite()]
    if not finite.numel():
        return values
    drawn = torch.randn(values.shape, generator=made, dtype=torch.float64)
    return (finite.mean() + finite.std(correction=0) * drawn).clamp(finite.min(), finite.max())


def _sprinkled(specials: Specials) -> Fill:
    """In every second row (of the last axis), one special value in turn, at a random place.

    The first element of all is one of those places, and so is the last where its row is.
    """

    def fill(values: torch.Tensor, info: torch.finfo, made: torch.Generator) -> torch.Tensor:
        rows = values.reshape(-1, values.shape[-1] if values.dim() else 1).clone()
        chosen = torch.arange(0, len(rows), 2)
        column = torch.randint(rows.shape[1], (len(chosen),), generator=made)
        column[0] = 0
        if len(chosen) > 1 and int(chosen[-1]) == len(rows) - 1:
            column[-1] = rows.shape[1] - 1
        given = torch.tensor(specials(info), dtype=torch.float64)
        rows[chosen, column] = given[torch.arange(len(chosen)) % len(given)]
        return rows

    return fill


def _everywhere(specials: Specials) -> Fill:
    """Each element one of the special values, at random."""

    def fill(values: torch.Tensor, info: torch.finfo, made: torch.Generator) -> torch.Tensor:
        given = torch.tensor(specials(info), dtype=torch.float64)
        return given[torch.randint(len(given), tuple(values.shape), generator=made)]

    return fill


def _last(special: float) -> Fill:
    """The special value as the very last element: what a loop that ends one early leaves out."""

    def fill(values: torch.Tensor, info: torch.finfo, made: torch.Generator) -> torch.Tensor:
        flat = values.flatten().clone()
        flat[-1] = special
        return flat

    return fill


def _row(special: float) -> Fill:
    """The first row of the last axis all of one value."""

    def fill(values: torch.Tensor, info: torch.finfo, made: torch.Generator) -> torch.Tensor:
        rows = values.reshape(-1, values.shape[-1] if values.dim() else 1).clone()
        rows[0] = special
        return rows

    return fill


def _around_exp(info: torch.finfo) -> tuple[float, ...]:
    high, low = exp_overflow(info), math.log(info.smallest_normal)
    beyond = low + math.log(info.eps)  # exp of this is about the smallest subnormal
    return (high - 0.5, high + 0.5, -high, low + 0.5, low - 0.5, beyond - 1.0, 11.0, -11.0, 88.0, -88.0)


SEEDS: dict[str, Fill] = {"redrawn 1": _redrawn, "permuted": _permuted, "rolled": _rolled, "redrawn 2": _redrawn}

EDGES: dict[str, Fill] = {
    "nan": _sprinkled(lambda info: (math.nan,)),
    "infinities": _sprinkled(lambda info: (math.inf, -math.inf)),
    "signed zeros": _everywhere(lambda info: (0.0, -0.0, 1.0, -1.0)),
    "around exp overflow": _sprinkled(_around_exp),
    "largest magnitudes": _sprinkled(lambda info: (info.max, info.min)),
    "denormals": _everywhere(
        lambda info: tuple(s * k * info.smallest_normal * info.eps for s in (1, -1) for k in (1, 3))
    ),
    "ties": _everywhere(lambda info: (-1.0, 0.5, 2.0)),
    "nan at the end": _last(math.nan),
    "a row of -inf": _row(-math.inf),
    "all equal": _everywhere(lambda info: (0.75,)),
    "all zero": _everywhere(lambda info: (0.0,)),
    "smallest normals": _everywhere(lambda info: (info.smallest_normal, -info.smallest_normal, 1.0)),
    "nan everywhere": _everywhere(lambda info: (math.nan,)),
    "a row of nan": _row(math.nan),
    "around exp overflow everywhere": _everywhere(_around_exp),
    "inf at the end": _last(math.inf),
}

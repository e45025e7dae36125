"""What the target's results differ in from the source's and from exact ones: from saved attempts to a `Probe`.

Definitions. Elements that the source itself left unwritten are not compared.
- error: see `ulp.unit`; over elements where oracle and source are finite (target's error: and the target is).
  Where the source is finite and the oracle is not, or is more than a sixteenth of its size away (but at least
  DISPUTE units), the row's reference defines another function (often at NaN); there the target is held to the
  source: its distance from it counts as its error, and the source has none.
- unequal special: one is NaN and the other is not; or one is infinite and the other is not that infinity.
  Signs of NaNs and of zeros do not count.
- poisoned: elements of the target's results whose bytes are, in two attempts, what memory was filled with before.
- repeats: both attempts gave the same bits. They start from unequal patterns in free memory and beside the
  arguments, so a side that reads what it must not read does not repeat.
- facts: count, places, types, shapes, dtypes, strides (of axes longer than 1) and requires_grad of the results.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from containers.box.gate.probes.cases import Case
from containers.box.gate.probes.memory import PATTERNS
from containers.box.gate.probes.ulp import unit, wide
from farm.measured.records import Difference, Probe

#: Units by which source and oracle differ at least where they do not mean the same function.
DISPUTE = 4.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """One tensor that a call gave, as saved."""

    place: str  #: `result 0`, `gradient of x` or `argument x`
    tensor: torch.Tensor  #: first attempt; on the CPU, contiguous
    again: torch.Tensor | None  #: second attempt; None: it gave another number of results
    stride: tuple[int, ...]
    requires_grad: bool
    type: str = "Tensor"  #: name of its class


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What came of a case on one side."""

    raised: str | None = None
    results: tuple[Result, ...] = ()
    others: str = "[]"  #: what was returned besides tensors, as text
    changed: tuple[str, ...] = ()  #: names of arguments that are not as they were
    beside: tuple[str, ...] = ()  #: names of arguments beside which memory was written
    filled: str = "cuda"  #: whose patterns free memory had: a key of PATTERNS


@dataclass
class _Sums:
    """Running maxima over the results of one probe."""

    source_error: float | None = None
    target_error: float | None = None
    distance: float | None = None
    special: int = 0
    poisoned: int = 0
    facts: list[str] = field(default_factory=list)
    worst: Difference | None = None
    worst_size: float = -1.0


def probe(subject: str, case: Case, source: Attempt, target: Attempt, oracle: dict[str, torch.Tensor]) -> Probe:
    """The record of one case. `oracle` has exact results in float64 by place; none: no oracle."""
    sums = _Sums()
    if source.raised is None and target.raised is None:
        _compare(case, source, target, oracle, sums)
    silent = source.raised is not None
    touched = set(target.changed) - set(source.changed) | {f"memory beside {name}" for name in target.beside}
    return Probe(
        subject=subject,
        key=case.call.key,
        kind=case.kind,
        name=case.name,
        source_raised=source.raised,
        target_raised=target.raised,
        source_error_ulp=sums.source_error,
        target_error_ulp=sums.target_error,
        unequal_special=sums.special,
        unequal_facts="; ".join(sums.facts)[:500] or None,
        poisoned=sums.poisoned,
        inputs_changed=() if silent else tuple(sorted(touched)),
        source_repeats=None if silent else _repeats(source),
        target_repeats=None if silent or target.raised is not None else _repeats(target),
        worst=sums.worst,
        distance_ulp=sums.distance,
        function=case.call.name,
    )


def unwritten(result: Result, filled: str) -> torch.Tensor:
    """Where the result's bytes are those of free memory in both attempts; bool, of the tensor's shape."""
    shape = result.tensor.shape
    if result.again is None or result.again.shape != shape or not result.tensor.numel():
        return torch.zeros(shape, dtype=torch.bool)
    where = torch.ones(result.tensor.numel(), dtype=torch.bool)
    for tensor, patterns in zip((result.tensor, result.again), PATTERNS[filled], strict=True):
        raw = tensor.contiguous().view(-1).view(torch.uint8).view(tensor.numel(), -1)
        where &= torch.stack([(raw == pattern).all(dim=1) for pattern in patterns]).any(dim=0)
    return where.view(shape)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same shape, dtype and bytes."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one.contiguous().view(-1).view(torch.uint8), other.contiguous().view(-1).view(torch.uint8))


def agrees(source: Attempt, oracle: dict[str, torch.Tensor]) -> bool:
    """Whether the oracle computes what the source does: root mean square difference at most a tenth of its own.

    Asked of captured inputs alone, where the row's own comparison has passed.
    """
    for result in source.results:
        exact = oracle.get(result.place)
        if exact is None:
            continue
        if exact.shape != wide(result.tensor).shape:
            return False
        off = (wide(result.tensor) - exact).nan_to_num(0.0, 0.0, 0.0)
        if float(off.square().mean().sqrt()) > 0.1 * float(exact.nan_to_num(0.0, 0.0, 0.0).square().mean().sqrt()):
            return False
    return bool(oracle)


def _repeats(attempt: Attempt) -> bool:
    return all(r.again is not None and same_bits(r.tensor, r.again) for r in attempt.results)


def _compare(case: Case, source: Attempt, target: Attempt, oracle: dict[str, torch.Tensor], sums: _Sums) -> None:
    if source.others != target.others:
        sums.facts.append(f"{target.others[:100]} instead of {source.others[:100]}")
    ours = {result.place: result for result in target.results}
    inputs = {f"argument {slot.name}": slot.data for slot in case.call.slots}
    for position, theirs in enumerate(source.results):
        mine = ours.pop(theirs.place, None)
        if mine is None and theirs.place in inputs:
            # The source changes this argument and the target leaves it as it was.
            data = inputs[theirs.place]
            mine = Result(place=theirs.place, tensor=data, again=data, stride=theirs.stride, requires_grad=False)
        if mine is None:
            sums.facts.append(f"no {theirs.place}")
            continue
        _facts(theirs, mine, sums)
        if mine.tensor.shape == theirs.tensor.shape:
            exact = oracle.get(theirs.place)
            _values(position, (theirs, source.filled), (mine, target.filled), exact, sums)
    # Arguments that the target alone changed are reported as such.
    sums.facts.extend(f"{place} is new" for place in ours if not place.startswith("argument "))


def _facts(theirs: Result, mine: Result, sums: _Sums) -> None:
    if mine.tensor.shape != theirs.tensor.shape:
        sums.facts.append(f"{theirs.place}: shape {tuple(mine.tensor.shape)}, not {tuple(theirs.tensor.shape)}")
        return
    if theirs.place.startswith("argument "):
        return
    pairs = {
        "type": (mine.type, theirs.type),
        "dtype": (str(mine.tensor.dtype), str(theirs.tensor.dtype)),
        "stride": (_long_strides(mine), _long_strides(theirs)),
        "requires_grad": (mine.requires_grad, theirs.requires_grad),
    }
    sums.facts.extend(f"{theirs.place}: {name} {a}, not {b}" for name, (a, b) in pairs.items() if a != b)


def _long_strides(result: Result) -> tuple[int, ...]:
    shape = result.tensor.shape
    return tuple(s for s, n in zip(result.stride, shape, strict=True) if n > 1) if result.tensor.numel() else ()


def _values(
    position: int, theirs: tuple[Result, str], mine: tuple[Result, str], exact: torch.Tensor | None, sums: _Sums
) -> None:
    source, target = wide(theirs[0].tensor), wide(mine[0].tensor)
    dtype = theirs[0].tensor.dtype.to_real() if theirs[0].tensor.is_complex() else theirs[0].tensor.dtype
    left, missing = unwritten(*theirs), unwritten(*mine)
    if left.shape != source.shape:
        left, missing = (mask.unsqueeze(-1).expand(source.shape) for mask in (left, missing))
    sums.poisoned += int((missing & ~left).sum())
    special = _special(source, target) & ~left
    sums.special += int(special.sum())
    finite = source.isfinite() & target.isfinite() & ~left
    apart = _largest((target - source).abs() / unit(source, dtype), finite)
    sums.distance = _most(sums.distance, apart)
    ruler = source
    if exact is not None and exact.shape == source.shape:
        ruler = torch.where(_undisputed(source, exact, dtype), exact, source)
        one = unit(ruler, dtype)
        sums.source_error = _most(
            sums.source_error, _largest((source - ruler).abs() / one, source.isfinite() & ~left)
        )
        sums.target_error = _most(sums.target_error, _largest((target - ruler).abs() / one, finite))
    size = torch.where(finite, (target - ruler).abs() / unit(ruler, dtype), -1.0)
    size = torch.where(special, math.inf, size)
    if not size.numel() or float(size.max()) <= sums.worst_size:
        return
    at = tuple(int(i) for i in torch.unravel_index(size.argmax(), size.shape))
    sums.worst_size = float(size.max())
    sums.worst = Difference(
        output=position,
        index=at,
        oracle=float(exact[at]) if exact is not None and exact.shape == source.shape else None,
        source=float(source[at]),
        target=float(target[at]),
    )


def _undisputed(source: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    most = max(2.0**-4 / torch.finfo(dtype).eps, DISPUTE) if dtype.is_floating_point else DISPUTE
    return exact.isfinite() & source.isfinite() & ((source - exact).abs() <= most * unit(exact, dtype))


def _special(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    infinite = (source.isinf() | target.isinf()) & (source != target) & ~(source.isnan() & target.isnan())
    return (source.isnan() != target.isnan()) | infinite


def _largest(values: torch.Tensor, where: torch.Tensor) -> float | None:
    chosen = values[where]
    return float(chosen.max()) if chosen.numel() else None


def _most(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return max(known) if known else None


def from_saved(plain: dict[str, Any]) -> Attempt:
    """The attempt that `attempt.attempt` gave and `calls.save` wrote. Raises on any other form: it was forged."""
    results = tuple(Result(**{**item, "stride": tuple(item["stride"])}) for item in plain["results"])
    return Attempt(
        raised=plain["raised"],
        results=results,
        others=plain["others"],
        changed=tuple(plain["changed"]),
        beside=tuple(plain["beside"]),
        filled=plain["filled"],
    )

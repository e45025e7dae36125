"""Timed calls to blocks: what each ABBA block says, and which blocks count. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from farm.measured.records import TimedCall

#: Slots of a block that run the same side.
_OUTER, _INNER = {0, 3}, {1, 2}
#: A block further from the median than so many median absolute deviations is an outlier. It counts all the same.
_OUTLIER_DEVIATIONS = 5.0


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of one config."""

    number: int
    complete: bool  #: four slots, A B B A, with the same number of calls each and a device time in every call
    throttled: bool  #: a call of either half ran while the GPU was held back
    reference_ns: float  #: median device time of a call; 0 when not complete
    target_ns: float

    @property
    def counts(self) -> bool:
        """Whether the block takes part in the estimate; it does so with both halves or not at all."""
        return self.complete and not self.throttled

    @property
    def log_ratio(self) -> float:
        """log(reference / target): above zero where the target is faster."""
        return math.log(self.reference_ns / self.target_ns)


def device_ns(call: TimedCall) -> int:
    """Device time of a call: the sum over its kernels, copies and memsets, nanoseconds."""
    return sum(event.end_ns - event.start_ns for event in call.events)


def blocks(calls: Iterable[TimedCall]) -> dict[str, tuple[Block, ...]]:
    """Blocks by config, in the order of their numbers; calls of one subject, all control or none."""
    found: dict[str, dict[int, list[TimedCall]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        found[call.config][call.block].append(call)
    return {
        config: tuple(_block(number, numbered[number]) for number in sorted(numbered))
        for config, numbered in found.items()
    }


def _block(number: int, calls: list[TimedCall]) -> Block:
    complete = _complete(calls)
    times: dict[bool, list[int]] = {True: [], False: []}
    for call in calls:
        times[call.reference].append(device_ns(call))
    return Block(
        number=number,
        complete=complete,
        throttled=any(call.throttle for call in calls),
        reference_ns=median(times[True]) if complete else 0.0,
        target_ns=median(times[False]) if complete else 0.0,
    )


def _complete(calls: list[TimedCall]) -> bool:
    sides: dict[int, set[bool]] = defaultdict(set)
    repeats: dict[int, list[int]] = defaultdict(list)
    for call in calls:
        sides[call.slot].add(call.reference)
        repeats[call.slot].append(call.repeat)
    if set(sides) != _OUTER | _INNER or any(device_ns(call) <= 0 for call in calls):
        return False
    outer = set.union(*(sides[slot] for slot in _OUTER))
    inner = set.union(*(sides[slot] for slot in _INNER))
    same = {tuple(sorted(numbers)) for numbers in repeats.values()}
    return len(outer) == len(inner) == 1 and outer != inner and same == {tuple(range(len(repeats[0])))}


def samples(found: Mapping[str, tuple[Block, ...]]) -> dict[str, list[float]]:
    """Log ratios of the blocks that count, by config."""
    return {config: [b.log_ratio for b in listed if b.counts] for config, listed in found.items()}


def outliers(values: list[float]) -> int:
    """How many values lie further than 5 median absolute deviations from the median; 0 where most are equal."""
    if not values:
        return 0
    middle = median(values)
    deviation = median(abs(value - middle) for value in values)
    return sum(abs(value - middle) > _OUTLIER_DEVIATIONS * deviation for value in values) if deviation else 0

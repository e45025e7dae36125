"""Speedups as published tables give them: best of a few repeats, without an interval. Never gated."""

import math
from collections.abc import Iterable

from farm.measured.blocks import device_ns
from farm.measured.records import TimedCall

REPEATS = 4


def best_of_4(calls: Iterable[TimedCall]) -> dict[str, float]:
    """Best reference time / best target time by config, over the first four whole calls of each side.

    Each side's best is its least device time. A config with fewer than four such calls on a side is left out.
    """
    times: dict[str, dict[bool, list[int]]] = {}
    for call in calls:
        if not call.control and call.events and not call.lost:
            times.setdefault(call.config, {True: [], False: []})[call.reference].append(device_ns(call))
    return {
        config: min(sides[True][:REPEATS]) / min(sides[False][:REPEATS])
        for config, sides in times.items()
        if all(len(listed) >= REPEATS and min(listed[:REPEATS]) > 0 for listed in sides.values())
    }


def geomean_of(ratios: Iterable[float]) -> float | None:
    """Geometric mean; None of nothing. Raises ValueError for a ratio that is not above zero."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None

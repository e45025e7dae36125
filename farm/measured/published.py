"""Speedups as published tables give them: best of a few repeats, without an interval. Never gated."""

import math
from collections.abc import Iterable, Iterator

from farm.measured.blocks import device_ns
from farm.measured.model import Measured
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


def beside(measured: Measured, calls: Iterable[TimedCall]) -> Iterator[str]:
    """The gate's speedups beside those of the published protocol: a line for the geomean, one a config."""
    best = best_of_4(calls)
    yield (
        f"{measured.op} geomean: gate {_gate(measured.low, measured.ratio, measured.high)} over "
        f"{sum(line.ratio is not None for line in measured.configs)} configs; "
        f"best of {REPEATS} {_number(geomean_of(best.values()))} over {len(best)} (never gated)"
    )
    for line in measured.configs:
        yield (
            f"{measured.op} {line.config}: gate {_gate(line.low, line.ratio, line.high)}; "
            f"best of {REPEATS} {_number(best.get(line.config))}"
        )


def _gate(low: float | None, ratio: float | None, high: float | None) -> str:
    known = low is not None and ratio is not None and high is not None
    return f"{ratio:.3f} [{low:.3f}, {high:.3f}]" if known else "not measured"


def _number(ratio: float | None) -> str:
    return "not measured" if ratio is None else f"{ratio:.3f}"

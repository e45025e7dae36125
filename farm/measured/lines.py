"""Configs as lines of a table, and what in them a person should look at. Decides nothing. Pure."""

from collections.abc import Iterator, Sequence
from statistics import median

from farm.measured.blocks import blocks, device_ns, outliers
from farm.measured.gpus import memory_peak
from farm.measured.model import ConfigLine, Flag
from farm.measured.records import ConfigFact, TimedCall
from farm.measured.statistics import geomean

#: Ratios outside of these, and traffic beyond this multiple of the memory's peak, are for a person to look at.
SLOW, FAST, BEYOND_PEAK = 0.70, 1.5, 1.02
#: Median clocks of the two sides may differ by so much before a person should look.
CLOCK_SHARE = 0.03


def config_line(fact: ConfigFact, calls: Sequence[TimedCall]) -> ConfigLine:
    """One config's part of the table; `calls` may hold others too."""
    own = [call for call in calls if call.config == fact.config and not call.control]
    found = blocks(own).get(fact.config, ())
    values = [block.log_ratio for block in found if block.counts]
    interval = geomean([values]) if len(values) >= 2 else None
    reference = [call for call in own if call.reference]
    target = [call for call in own if not call.reference]
    return ConfigLine(
        config=fact.config,
        origin=fact.origin,
        blocks=len(values),
        dropped=len(found) - len(values),
        outliers=outliers(values),
        low=interval.low if interval else None,
        ratio=interval.ratio if interval else None,
        high=interval.high if interval else None,
        reference_us=_median_us([device_ns(call) for call in reference if call.events]),
        target_us=_median_us([device_ns(call) for call in target if call.events]),
        reference_wall_us=_median_us([call.wall_ns for call in reference]),
        target_wall_us=_median_us([call.wall_ns for call in target]),
        problem=fact.problem,
    )


def _median_us(times_ns: Sequence[int]) -> float | None:
    return median(times_ns) / 1000 if times_ns else None


def config_flags(
    facts: Sequence[ConfigFact], lines: Sequence[ConfigLine], calls: Sequence[TimedCall], gpu: str
) -> list[Flag]:
    """What decides nothing and a person should look at."""
    found = []
    least = {fact.config: fact.bytes_least for fact in facts}
    peak = memory_peak(gpu)
    for line in lines:
        if line.problem is not None:
            found.append(Flag(where=line.config, what=line.problem))
        if line.ratio is not None and not SLOW <= line.ratio <= FAST:
            found.append(Flag(where=line.config, what=f"speedup {line.ratio:.3f}, outside {SLOW} to {FAST}"))
        traffic = least[line.config]
        if peak is not None and traffic and line.target_us:
            share = traffic / (line.target_us * 1e-6) / peak.bytes_per_s
            if share > BEYOND_PEAK:
                found.append(Flag(where=line.config, what=f"{share:.2f} times the memory's peak ({peak.source})"))
    if peak is None:
        found.append(Flag(where=gpu, what="no memory peak known, so none was compared"))
    found.extend(_clock_flags(calls))
    return found


def impossible(facts: Sequence[ConfigFact], lines: Sequence[ConfigLine], gpu: str) -> Iterator[str]:
    """Configs in which the target alone, and by far, beats the memory: what it reads was not in memory.

    Beyond the peak and more than FAST times the source's speed, with the source within the peak. Either alone is
    for a person to look at: an op may need less than all of its inputs, and a conversion may be faster.
    """
    least = {fact.config: fact.bytes_least for fact in facts}
    peak = memory_peak(gpu)
    for line in lines:
        traffic = least.get(line.config)
        if peak is None or not traffic or not line.target_us or not line.reference_us or line.ratio is None:
            continue
        share, of_source = (
            traffic / (time_us * 1e-6) / peak.bytes_per_s for time_us in (line.target_us, line.reference_us)
        )
        if share > BEYOND_PEAK >= of_source and line.ratio > FAST:
            yield (
                f"{line.config}: {share:.2f} times the memory's peak and {line.ratio:.2f} times as fast as the "
                "source, which keeps within it"
            )


def _clock_flags(calls: Sequence[TimedCall]) -> list[Flag]:
    found = []
    if any(call.throttle is None for call in calls):
        found.append(Flag(where="clocks", what="throttle reasons could not be read in all calls"))
    for config in dict.fromkeys(call.config for call in calls):
        clocks: dict[bool, list[int]] = {True: [], False: []}
        for call in calls:
            if call.config == config and not call.control and call.sm_clock_mhz is not None:
                clocks[call.reference].append(call.sm_clock_mhz)
        if clocks[True] and clocks[False]:
            reference, target = median(clocks[True]), median(clocks[False])
            if abs(target - reference) > CLOCK_SHARE * reference:
                found.append(
                    Flag(where=config, what=f"SM clock {reference:g} MHz for the source, {target:g} MHz here")
                )
    return found

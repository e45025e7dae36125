"""Calls to blocks: medians, and which blocks count."""

import math
from dataclasses import replace

import pytest

from farm.measured.blocks import blocks, device_ns, outliers, samples
from farm.measured.published import best_of_4, geomean_of
from farm.measured.records import DeviceEvent, TimedCall
from tests.unit.farm.measured.builders import CONFIGS, call, timed

ONE = CONFIGS[0]


def block_of(calls: list[TimedCall]) -> object:
    (found,) = blocks(calls)[ONE]
    return found


def test_a_block_is_the_ratio_of_the_medians() -> None:
    calls = [
        call(ONE, slot=slot, repeat=repeat, reference=slot in {0, 3}, time_ns=time)
        for slot, times in enumerate([(100, 110), (50, 60), (70, 80), (120, 900)])
        for repeat, time in enumerate(times)
    ]
    assert block_of(calls).log_ratio == pytest.approx(math.log(115 / 65))


def test_a_call_takes_the_sum_of_its_device_work() -> None:
    events = tuple(
        DeviceEvent(symbol="k", start_ns=s, end_ns=e, stream=1, correlation=1) for s, e in [(0, 5), (3, 9)]
    )
    assert device_ns(call(events=events)) == 11


def test_a_throttled_call_drops_its_whole_block_and_no_other() -> None:
    calls = timed(ONE)
    calls[9] = replace(calls[9], throttle=8)
    found = blocks(calls)[ONE]
    assert [b.counts for b in found] == [True, False, *[True] * 6]
    assert len(samples({ONE: found})[ONE]) == 7


@pytest.mark.parametrize(
    "spoil",
    [
        lambda calls: calls[:-1],
        lambda calls: calls[:4],
        lambda calls: [replace(c, reference=c.slot in {0, 1}) for c in calls],
        lambda calls: [replace(c, reference=True) for c in calls],
        lambda calls: [*calls, replace(calls[0], repeat=2)],
        lambda calls: [*calls, calls[0]],
        lambda calls: [replace(c, events=()) if i == 3 else c for i, c in enumerate(calls)],
    ],
    ids=["a call short", "half", "AABB", "AAAA", "one too many", "one twice", "no device time"],
)
def test_a_block_that_is_not_whole_does_not_count(spoil: object) -> None:
    calls = timed(ONE, blocks=range(1))
    assert block_of(calls).counts
    assert not block_of(spoil(calls)).counts


def test_a_block_may_begin_with_either_side() -> None:
    assert block_of([replace(c, reference=not c.reference) for c in timed(ONE, blocks=range(1))]).counts


def test_outliers_are_counted_and_equal_values_have_none() -> None:
    assert outliers([0.0, 0.01, -0.01, 0.005, -0.005, 0.3]) == 1
    assert outliers([0.1] * 5) == outliers([]) == 0


def test_best_of_4_takes_the_least_of_the_first_four_calls() -> None:
    calls = [
        call(ONE, reference=r, time_ns=t)
        for r, times in [(True, (30, 20, 25, 40, 1)), (False, (12, 10, 11, 13, 1))]
        for t in times
    ]
    assert best_of_4(calls) == {ONE: 2.0}
    assert best_of_4(calls[:8]) == {}
    assert geomean_of([2.0, 0.5]) == pytest.approx(1.0)
    assert geomean_of([]) is None

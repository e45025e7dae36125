"""The geomean gate: honest timing passes, each cheat and each loss is named."""

from dataclasses import replace

import pytest

from farm.gates import Ruling
from farm.measured.geomean import GeomeanRuling, geomean_gate
from farm.measured.records import ConfigFact, DeviceEvent, TimedCall
from farm.measured.ruling import Record
from tests.unit.farm.measured.builders import (
    CONFIGS,
    ENTRY,
    SETTINGS,
    changed,
    fact,
    is_call,
    timed,
    timing,
)


def ruled(records: list[Record]) -> GeomeanRuling:
    facts = [r for r in records if isinstance(r, ConfigFact)]
    return geomean_gate(facts, [r for r in records if isinstance(r, TimedCall)], SETTINGS)


def event(symbol: str = ENTRY, stream: int = 7, length: int = 100_000) -> DeviceEvent:
    return DeviceEvent(symbol=symbol, start_ns=5, end_ns=5 + length, stream=stream, correlation=1)


def test_an_equal_kernel_passes_and_its_summary_is_the_trailer() -> None:
    found = ruled(timing(1.004))
    assert found.result.ruling is Ruling.PASS
    assert found.interval is not None
    low, ratio, high = found.interval
    assert found.result.summary == f"measured {ratio:.3f} [{low:.3f}, {high:.3f}] over 2 configs"
    assert 1.0 < ratio < 1.008
    assert found.control == pytest.approx(1.0, abs=0.01)


def test_a_slow_kernel_fails_with_its_number() -> None:
    result = ruled(timing(0.9)).result
    assert result.ruling is Ruling.FAIL
    assert result.summary.startswith("measured 0.90")


def test_an_open_interval_is_ambiguous_whether_or_not_more_may_be_measured() -> None:
    early = ruled(timing(0.95, noise=0.05)).result
    late = ruled(timing(0.95, noise=0.05, blocks=range(32))).result
    assert early.ruling is late.ruling is Ruling.AMBIGUOUS
    assert "more may be measured" in early.summary
    assert late.summary.endswith("open after 32 blocks")


TARGET = is_call(reference=False, block=3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"same_output": False}, "wrong output of the target in 4 of 32 calls, block 3 slot 1 call 0"),
        ({"late": 1}, "the target was still working after the synchronisation, block 3"),
        (
            {"events": (event(), event("other"))},
            "same kernels in each call, block 3 slot 1 call 0: more 1 x other",
        ),
        ({"events": (event("other"),)}, f"more 1 x other; fewer 1 x {ENTRY}"),
    ],
)
def test_a_cheat_in_timing_fails_by_name_however_fast_it_is(changes: dict[str, object], reason: str) -> None:
    result = ruled(changed(timing(1.4), TARGET, **changes)).result
    assert result.ruling is Ruling.FAIL
    assert result.summary.startswith("n=1024: ")
    assert reason in result.summary


def test_a_second_stream_is_a_cheat_unless_the_source_has_one_as_well() -> None:
    two = (event(length=50_000), event(stream=8, length=50_000))
    records = changed(timing(), is_call(reference=False), events=two)
    assert "works on 2 streams, the source on 1" in ruled(records).result.summary
    both = changed(records, is_call(reference=True), events=two)
    assert "streams" not in ruled(both).result.summary


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"same_output": False}, "wrong output of the reference"),
        ({"late": 2}, "the reference was still working"),
        ({"events": (event("other"),)}, "the reference does not launch the same kernels"),
        ({"lost": 3}, "12 device records lost"),
        ({"events": ()}, "no device record in 4 of 128 calls"),
        ({"events": (event(length=0),)}, "no duration"),
        ({"events": (event(length=-7),)}, "no duration"),
    ],
)
def test_what_goes_wrong_with_the_reference_is_no_fault_of_the_target(
    changes: dict[str, object], reason: str
) -> None:
    result = ruled(changed(timing(), is_call(reference=True, block=3), **changes)).result
    assert result.ruling is Ruling.INFRA
    assert reason in result.summary


def test_a_control_that_was_tuned_otherwise_is_measured_all_the_same() -> None:
    other = changed(timing(), is_call(reference=False, control=True), events=(event("tuned_otherwise"),))
    assert "launch" not in ruled(other).result.summary
    late = changed(timing(), is_call(reference=False, control=True, block=2), late=1)
    assert "the control was still working" in ruled(late).result.summary


@pytest.mark.parametrize("changes", [{"lost": 1}, {"events": ()}, {"lost": 1, "events": (event("other"),)}])
def test_incomplete_records_convict_nobody(changes: dict[str, object]) -> None:
    assert ruled(changed(timing(), TARGET, **changes)).result.ruling is Ruling.INFRA


def test_a_call_that_did_nothing_and_is_wrong_is_a_cheat() -> None:
    result = ruled(changed(timing(), TARGET, events=(), same_output=False)).result
    assert result.ruling is Ruling.FAIL
    assert "no work and a wrong output from the target in 4 of 32" in result.summary


def test_a_result_that_is_given_again_is_a_cheat_by_that_name() -> None:
    result = ruled(changed(timing(), TARGET, same_output=False, stale=True)).result
    assert result.ruling is Ruling.FAIL
    assert "the result of an earlier call again from the target in 4 of 32" in result.summary
    assert ruled(changed(timing(), TARGET, stale=True)).result.ruling is Ruling.PASS, (
        "equal inputs give equal outputs"
    )


@pytest.mark.parametrize(
    ("least", "ratio", "ruling"),
    [
        (450_000_000, 2.0, Ruling.FAIL),  # 9 TB/s of 4.8, the source 4.5
        (400_000_000, 2.0, Ruling.FAIL),
        (400_000_000, 1.2, Ruling.PASS),  # within the peak
        (600_000_000, 2.0, Ruling.PASS),  # the source is beyond it as well: it need not read all
        (200_000_000, 2.0, Ruling.PASS),
    ],
)
def test_a_target_that_alone_and_by_far_beats_the_memory_is_a_cheat(
    least: int, ratio: float, ruling: Ruling
) -> None:
    records = changed(timing(ratio), lambda r: isinstance(r, ConfigFact), bytes_least=least)
    result = ruled(records).result
    assert result.ruling is ruling
    assert ("times the memory's peak" in result.summary) is (ruling is Ruling.FAIL)


def test_a_cheat_is_named_though_records_were_lost_elsewhere() -> None:
    records = changed(timing(), is_call(reference=True, block=1), lost=1)
    result = ruled(changed(records, TARGET, same_output=False)).result
    assert result.ruling is Ruling.FAIL
    assert "wrong output of the target" in result.summary


@pytest.mark.parametrize(("blocks", "ruling"), [((3, 4), Ruling.PASS), ((3, 4, 5), Ruling.INFRA)])
def test_throttled_blocks_are_dropped_until_a_quarter_is_gone(blocks: tuple[int, ...], ruling: Ruling) -> None:
    records = timing()
    for block in blocks:
        records = changed(records, is_call(reference=False, block=block), throttle=8)
    found = ruled(records)
    assert found.result.ruling is ruling
    assert (found.configs[0].blocks, found.configs[0].dropped) == (8 - len(blocks), len(blocks))
    assert "3 of 8 blocks dropped, 3 of them throttled" in found.result.summary or ruling is Ruling.PASS


def test_a_throttled_block_would_have_decided_and_does_not() -> None:
    slow = tuple(event(length=10_000_000) for _ in range(1))
    records = changed(timing(), is_call(reference=False, block=3), throttle=8, events=slow)
    found = ruled(records)
    assert found.result.ruling is Ruling.PASS


@pytest.mark.parametrize("even", [0.985, 1.015])
def test_a_control_that_is_not_even_is_infra_whatever_the_ratio(even: float) -> None:
    records = [r for r in timing() if not (isinstance(r, TimedCall) and r.control)]
    for config in CONFIGS:
        records += timed(config, control=True, ratio=even)
    result = ruled(records).result
    assert result.ruling is Ruling.INFRA
    assert "A/A control at" in result.summary


@pytest.mark.parametrize(
    ("spoil", "ruling", "reason"),
    [
        (lambda r: [], Ruling.INFRA, "no config was timed"),
        (lambda r: [x for x in r if not isinstance(x, TimedCall)], Ruling.INFRA, "2 of 2 configs were not timed"),
        (lambda r: [x for x in r if not getattr(x, "control", False)], Ruling.INFRA, "no A/A control"),
        (
            lambda r: [x for x in r if getattr(x, "block", 0) < 7],
            Ruling.INFRA,
            "7 blocks measured, 8 are the least",
        ),
        (lambda r: [*r, *timed("n=7")], Ruling.INFRA, "n=7: timed, and in no list"),
        (lambda r: [*r, fact("n=7")], Ruling.INFRA, "1 of 3 configs were not timed: n=7"),
        (lambda r: [*r, fact("n=7", problem="CUDA error")], Ruling.INFRA, "1 of 3 configs: n=7: CUDA error"),
        (
            lambda r: [*r, fact("n=7", problem="NotImplementedError", problem_of="target")],
            Ruling.FAIL,
            "the target does not run 1 of 3 configs: n=7: NotImplementedError",
        ),
    ],
    ids=["nothing", "no calls", "no control", "few", "unknown", "untimed", "problem", "target"],
)
def test_the_frozen_list_is_timed_in_whole_or_nothing_follows(spoil: object, ruling: Ruling, reason: str) -> None:
    result = ruled(spoil(timing())).result
    assert (result.ruling, reason in result.summary) == (ruling, True), result.summary


@pytest.mark.parametrize(("whose", "said"), [("source", "over 2 configs"), ("settings", "over 2 of 3 configs")])
def test_a_config_that_is_left_out_is_reported_and_not_held_against_the_target(whose: str, said: str) -> None:
    left_out = fact("n=7", problem="tileiras exit 5", problem_of=whose)
    found = ruled([*timing(), left_out])
    assert found.result.ruling is Ruling.PASS
    assert found.result.summary.endswith(said)
    assert [(f.where, f.what) for f in found.flags] == [("n=7", "tileiras exit 5")]
    alone = ruled([left_out]).result
    assert (alone.ruling, alone.summary) == (Ruling.INFRA, "no config was timed: n=7: tileiras exit 5")


def test_a_second_reference_is_in_the_table_and_in_no_ruling() -> None:
    second = [fact("n=1024 triton", second_reference=True), *timed("n=1024 triton", ratio=0.5)]
    second[3] = replace(second[3], same_output=False)
    found = ruled([*timing(), *second])
    assert found.result.ruling is Ruling.PASS
    assert [line.config for line in found.configs] == list(CONFIGS)
    assert found.second[0].ratio == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("records", "where", "what"),
    [
        (timing(1.65), "n=1024", "speedup 1.6"),
        ([*timing(1.65, CONFIGS[:1]), *timing(0.65, CONFIGS[1:])], "n=4096", "speedup 0.6"),
        (
            [fact("n=1024", bytes_least=600_000_000), *timed("n=1024"), *timed("n=1024", control=True)],
            "n=1024",
            "1.25 times the memory's peak (NVIDIA H200",
        ),
        (changed(timing(), TARGET, throttle=None), "clocks", "throttle reasons"),
        (changed(timing(), is_call(reference=False), sm_clock_mhz=1500), "n=1024", "SM clock 1980 MHz"),
    ],
    ids=["fast", "slow", "peak", "unread", "clocks"],
)
def test_what_a_person_should_look_at_is_flagged_and_decides_nothing(
    records: list[Record], where: str, what: str
) -> None:
    found = ruled(records)
    assert any(flag.where == where and flag.what.startswith(what) for flag in found.flags), found.flags
    assert found.result.ruling is Ruling.PASS


def test_an_honest_run_has_no_flags() -> None:
    assert ruled(timing()).flags == ()


def test_a_gpu_without_a_known_peak_is_said() -> None:
    facts, calls = [fact("n=1024")], [*timed("n=1024"), *timed("n=1024", control=True)]
    found = geomean_gate(facts, calls, replace(SETTINGS, gpu="Some GPU"))
    assert [flag.where for flag in found.flags] == ["Some GPU"]


def test_wall_time_is_reported_and_decides_nothing() -> None:
    slow = changed(timing(), is_call(reference=False), wall_ns=10**9)
    found = ruled(slow)
    assert found.result.ruling is Ruling.PASS
    assert (found.configs[0].reference_wall_us, found.configs[0].target_wall_us) == (50.0, 1e6)

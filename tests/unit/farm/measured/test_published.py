"""What a published table would print, beside what the gate says."""

from containers.box.gate.__main__ import arguments
from farm.measured.published import beside, best_of_4, geomean_of
from farm.measured.records import TimedCall
from farm.measured.ruling import rule
from tests.unit.farm.measured import builders


def test_each_config_and_the_geomean_have_a_line_with_both_numbers() -> None:
    records = builders.honest()
    measured = rule(records, builders.SETTINGS)
    calls = [record for record in records if isinstance(record, TimedCall)]
    head, *lines = beside(measured, calls)
    best = best_of_4(calls)
    assert len(lines) == len(measured.configs) == len(best) == len(builders.CONFIGS)
    assert f"gate {measured.ratio:.3f} [{measured.low:.3f}, {measured.high:.3f}]" in head
    assert f"best of 4 {geomean_of(best.values()):.3f} over {len(best)} (never gated)" in head
    for line, config in zip(lines, measured.configs, strict=True):
        assert config.config in line
        assert f"best of 4 {best[config.config]:.3f}" in line


def test_what_was_not_timed_is_said() -> None:
    untimed = [record for record in builders.honest() if not isinstance(record, TimedCall)]
    head = next(beside(rule(untimed, builders.SETTINGS), []))
    assert head.count("not measured") == 2


def test_the_runner_has_one_protocol_and_none_by_default() -> None:
    assert arguments(["-o", "r"]).protocol is None
    assert arguments(["-o", "r", "--protocol", "best-of-4"]).protocol == "best-of-4"

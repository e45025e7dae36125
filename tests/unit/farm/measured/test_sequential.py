"""What the timing process is asked to do next, played to its end."""

from dataclasses import replace

from farm.gates import Ruling
from farm.measured.geomean import geomean_gate
from farm.measured.records import TimedCall
from farm.measured.sequential import Ask, Sequential
from tests.unit.farm.measured.builders import CONFIGS, SETTINGS, fact, timed


def play(
    ratio: float, *, noise: float, control: float = 1.0, spoil: bool = False
) -> tuple[list[Ask], list[TimedCall]]:
    """Times as asked, until nothing is asked."""
    sequential, asked, calls, done, controlled = Sequential(CONFIGS), [], [], 0, 0
    while not (ask := sequential.ask()).done:
        asked.append(ask)
        new = []
        for config in CONFIGS:
            new += timed(config, ratio=ratio, noise=noise, blocks=range(done, done + ask.blocks))
            new += timed(config, ratio=control, control=True, blocks=range(controlled, controlled + ask.control))
        if spoil:
            new = [
                replace(c, same_output=False) if c.block == 2 and not c.reference and not c.control else c
                for c in new
            ]
        for call in new:
            sequential.add(call)
        calls += new
        done, controlled = done + ask.blocks, controlled + ask.control
    return [*asked, ask], calls


def ruling(calls: list[TimedCall]) -> Ruling:
    return geomean_gate([fact(config) for config in CONFIGS], calls, SETTINGS).result.ruling


def blocks(asked: list[Ask]) -> list[tuple[int, int]]:
    return [(ask.blocks, ask.control) for ask in asked]


def test_a_clear_case_is_over_after_the_first_blocks() -> None:
    for ratio, expected in ((1.0, Ruling.PASS), (0.9, Ruling.FAIL)):
        asked, calls = play(ratio, noise=0.005)
        assert blocks(asked) == [(8, 8), (0, 0)]
        assert ruling(calls) is expected


def test_an_open_case_doubles_up_to_four_times_and_is_then_ambiguous() -> None:
    asked, calls = play(0.953, noise=0.05)
    assert blocks(asked) == [(8, 8), (8, 0), (16, 0), (0, 0)]
    assert asked[-1].reason == "ambiguous"
    assert ruling(calls) is Ruling.AMBIGUOUS


def test_an_uneven_control_is_measured_longer_and_then_infra() -> None:
    asked, calls = play(1.0, noise=0.005, control=1.03)
    assert blocks(asked) == [(8, 8), (0, 8), (0, 16), (0, 0)]
    assert ruling(calls) is Ruling.INFRA


def test_a_cheat_ends_the_measuring() -> None:
    asked, calls = play(0.95, noise=0.05, spoil=True)
    assert blocks(asked) == [(8, 8), (0, 0)]
    assert "wrong output" in asked[-1].reason
    assert ruling(calls) is Ruling.FAIL


def test_without_configs_nothing_is_asked() -> None:
    assert Sequential(()).ask().done

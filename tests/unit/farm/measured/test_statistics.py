"""The interval and the decision, by formula and by simulation."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.measured.statistics import Answer, Interval, answer, bootstrap, geomean, t_reach
from farm.measured.student import t_quantile
from tests.unit.farm.measured.simulation import NOISES, lognormal, shares

LOGS = st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=12)


def test_one_config_has_the_textbook_t_interval() -> None:
    values = [0.01, -0.02, 0.03, 0.00, 0.02, -0.01, 0.01, 0.00]
    reach = t_quantile(0.975, 7) * np.std(values, ddof=1) / math.sqrt(8)
    assert t_reach([np.array(values)]) == pytest.approx(reach)


def test_configs_with_equal_blocks_and_spread_add_their_degrees_of_freedom() -> None:
    values = np.array([-0.01, 0.01, -0.01, 0.01])
    alone = np.std(values, ddof=1) / math.sqrt(4)
    assert t_reach([values] * 5) == pytest.approx(t_quantile(0.975, 5 * 3) * alone / math.sqrt(5))


def test_the_bootstrap_of_many_blocks_is_the_normal_interval() -> None:
    draw = random.Random(1)
    samples = [np.array([draw.gauss(0, 0.02) for _ in range(400)]) for _ in range(3)]
    low, high = bootstrap(samples)
    spread = math.sqrt(sum(s.var() / s.size for s in samples)) / 3
    assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=0.03)


@given(st.lists(LOGS, min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_the_interval_holds_the_geomean_and_both_kinds(samples: list[list[float]]) -> None:
    found = geomean(samples)
    assert found == geomean(samples), "the same measurement gives the same interval"
    assert found.ratio == pytest.approx(math.exp(np.mean([np.mean(s) for s in samples])))
    arrays = [np.array(s) for s in samples]
    low, high = bootstrap(arrays)
    reach, middle = t_reach(arrays), math.log(found.ratio)
    assert found.low <= found.ratio <= found.high
    assert math.log(found.low) <= min(low, middle - reach) + 1e-12
    assert math.log(found.high) >= max(high, middle + reach) - 1e-12


def test_equal_blocks_leave_no_doubt() -> None:
    assert geomean([[0.1] * 8]) == pytest.approx(Interval(*[math.exp(0.1)] * 3))


@pytest.mark.parametrize("samples", [[], [[0.1]], [[0.1, 0.2], []], [[0.1, math.nan]], [[0.1, -math.inf]]])
def test_nothing_is_estimated_from_nothing(samples: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="geomean needs"):
        geomean(samples)


@pytest.mark.parametrize(
    ("low", "high", "blocks", "expected"),
    [
        (0.95, 1.2, 8, Answer.PASS),
        (0.9499, 1.2, 8, Answer.MORE),
        (0.9499, 1.2, 31, Answer.MORE),
        (0.9499, 1.2, 32, Answer.AMBIGUOUS),
        (0.9, 0.95, 32, Answer.AMBIGUOUS),
        (0.9, 0.9499, 8, Answer.FAIL),
    ],
)
def test_the_answer_is_taken_from_the_bounds(low: float, high: float, blocks: int, expected: Answer) -> None:
    said = answer(Interval(low, (low + high) / 2, high), limit=0.95, blocks=blocks, most=32)
    assert said is expected


@pytest.mark.parametrize("configs", [1, 8, 30])
@pytest.mark.parametrize(("ratio", "right"), [(1.0, Answer.PASS), (0.93, Answer.FAIL)])
def test_the_gate_is_right_in_99_of_100_of_1000_simulated_measurements(
    ratio: float, right: Answer, configs: int
) -> None:
    _check(ratio, right, configs, 1000)


@pytest.mark.long
@pytest.mark.parametrize("configs", [1, 8, 30])
@pytest.mark.parametrize(("ratio", "right"), [(1.0, Answer.PASS), (0.93, Answer.FAIL)])
def test_the_gate_is_right_in_99_of_100_of_10000_simulated_measurements(
    ratio: float, right: Answer, configs: int
) -> None:
    _check(ratio, right, configs, 10_000)


def _check(ratio: float, right: Answer, configs: int, draws: int) -> None:
    said = shares(lognormal, ratio, configs, draws)
    print(
        f"true ratio {ratio}, {configs} configs, {draws} draws: " + ", ".join(f"{k} {n}" for k, n in said.items())
    )
    assert said[right] >= 0.99 * draws
    assert said[Answer.MORE] == 0


@pytest.mark.parametrize("noise", NOISES)
def test_no_noise_lets_a_slow_kernel_pass(noise: str) -> None:
    assert shares(NOISES[noise], 0.93, 8, 200)[Answer.PASS] == 0


def test_at_the_limit_itself_few_pass() -> None:
    assert shares(lognormal, 0.95, 2, 400)[Answer.PASS] <= 0.08 * 400

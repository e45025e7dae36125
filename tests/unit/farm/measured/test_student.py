"""Student's t against closed forms and printed tables."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.measured.student import t_below, t_quantile


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [(0.975, 1, 12.706), (0.975, 7, 2.365), (0.975, 31, 2.040), (0.95, 10, 1.812), (0.995, 5, 4.032)],
)
def test_quantiles_agree_with_printed_tables(probability: float, freedom: float, value: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(value, abs=5e-4)


@given(st.floats(0.001, 0.999))
def test_one_and_two_degrees_of_freedom_have_closed_forms(probability: float) -> None:
    assert t_quantile(probability, 1) == pytest.approx(
        math.tan(math.pi * (probability - 0.5)), rel=1e-9, abs=1e-12
    )
    two = (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    assert t_quantile(probability, 2) == pytest.approx(two, rel=1e-9, abs=1e-12)


@given(st.floats(0.01, 0.99), st.floats(0.7, 500))
def test_the_quantile_inverts_the_distribution(probability: float, freedom: float) -> None:
    assert t_below(t_quantile(probability, freedom), freedom) == pytest.approx(probability, abs=1e-9)


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 3), (1.0, 3), (0.5, 0), (0.5, math.nan)])
def test_nonsense_is_refused(probability: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(probability, freedom)

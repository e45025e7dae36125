"""A test that looks at numbers nobody computed goes on as if they were right."""

import pytest

from containers.box.trace.answers import Answer, ComparisonReached


def test_every_comparison_holds_after_any_arithmetic() -> None:
    answer = (Answer() - 3) / 2 * abs(Answer())
    assert answer < 1e-9
    assert answer > 1e9
    assert answer == 0
    assert (answer != 0) is False
    assert f"{answer:.3e}" == "?"


def test_an_integer_ends_the_row() -> None:
    with pytest.raises(ComparisonReached):
        range(Answer())  # type: ignore[arg-type]

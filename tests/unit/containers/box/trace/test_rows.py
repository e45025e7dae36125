"""Rows are selected by their backend parameter and named without it."""

import pytest

from containers.box.trace.rows import backend_of, is_case, numbered, row_key


@pytest.mark.parametrize(
    ("params", "backend"),
    [
        ({"backend": "cutile", "m": 1}, "cutile"),
        ({"test_backend": "cutile-rs"}, "cutile-rs"),
        ({"framework": "cutile"}, None),
        ({"backend": 3}, None),
        ({}, None),
    ],
)
def test_a_parameter_called_backend_says_whose_row_it_is(params: dict[str, object], backend: str | None) -> None:
    assert backend_of(params) == backend


def test_two_backends_rows_have_one_key() -> None:
    mine = row_key("t.py::test", {"backend": "cutile", "m": 4, "dtype": "f16"}, {})
    theirs = row_key("t.py::test", {"dtype": "f16", "backend": "cutile-rs", "m": 4}, {})
    assert mine == theirs == "t.py::test[dtype='f16', m=4]"


def test_other_parameters_make_other_keys() -> None:
    assert row_key("t", {"m": 4}, {}) != row_key("t", {"m": 5}, {})


def test_a_value_without_a_stable_text_is_named_by_its_position() -> None:
    assert row_key("t", {"make": object()}, {"make": 2}) == "t[make=#2]"


def test_equal_keys_are_numbered_in_order() -> None:
    assert numbered(["a", "b", "a", "a"]) == ["a", "b", "a#2", "a#3"]


@pytest.mark.parametrize(
    ("function", "case"),
    [
        ("test_op", True),
        ("test_perf", False),
        ("test_op_perf_large", False),
        ("test_benchmark", False),
        ("test_superfast", True),
    ],
)
def test_performance_cases_are_no_rows(function: str, case: bool) -> None:
    assert is_case(function) is case

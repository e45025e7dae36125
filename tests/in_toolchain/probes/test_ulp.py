"""Units in the last place agree with the spacing that numpy and the language define."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from containers.box.gate.probes.ulp import SMALL, SMALL_FOR_COARSE, spacing, unit, wide

HALVES = (torch.float16, torch.bfloat16)
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def one(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


@given(st.floats(min_value=0, max_value=1e308, allow_nan=False))
def test_float64_is_spaced_as_the_language_says(value: float) -> None:
    assert float(spacing(one(value), torch.float64)) == math.ulp(value)


@given(st.floats(min_value=0, max_value=2.0**127, width=32))
def test_float32_is_spaced_as_numpy_says(value: float) -> None:
    assert float(spacing(one(value), torch.float32)) == float(np.spacing(np.float32(value)))


@given(st.floats(min_value=0, max_value=65504, width=16))
def test_float16_is_spaced_as_numpy_says(value: float) -> None:
    expected = float(np.spacing(np.float16(value))) if value < 65504 else 32.0
    assert float(spacing(one(value), torch.float16)) == expected


@pytest.mark.parametrize("dtype", [*HALVES, *FP8])
def test_neighbours_of_every_small_type_are_one_unit_apart(dtype: torch.dtype) -> None:
    raw, bits = (torch.int16, 1 << 15) if dtype in HALVES else (torch.uint8, 128)
    values = wide(torch.arange(bits).to(raw).view(dtype))
    values = values[values.isfinite()]
    gaps = values.diff()
    assert torch.equal(spacing(values[:-1], dtype), gaps)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.bool, torch.uint8])
def test_integers_are_one_apart(dtype: torch.dtype) -> None:
    assert float(spacing(one(1e9), dtype)) == 1.0


def test_beyond_the_largest_number_the_unit_is_that_of_its_binade() -> None:
    assert float(spacing(one(1e9), torch.float16)) == 32.0


def test_a_small_element_is_measured_by_its_row() -> None:
    row = torch.tensor([[1.0, 2.0, 1e-12, -2.0] * 2, [1e-12, 1e-12, 2e-12, 1e-12] * 2], dtype=torch.float64)
    units = unit(row, torch.float32)
    eps = torch.finfo(torch.float32).eps
    assert float(units[0, 2]) == pytest.approx(SMALL * eps * 1.0)
    assert float(units[0, 0]) == eps
    assert float(units[1, 0]) == float(spacing(one(1e-12), torch.float32))
    assert float(unit(row, torch.bfloat16)[0, 2]) == pytest.approx(SMALL_FOR_COARSE * eps * 1.0)
    assert float(unit(row, torch.bfloat16)[0, 0]) == torch.finfo(torch.bfloat16).eps


def test_one_giant_does_not_excuse_its_row() -> None:
    row = torch.ones(1, 9, dtype=torch.float64)
    row[0, 4] = 1e30
    assert float(unit(row, torch.float32)[0, 0]) == torch.finfo(torch.float32).eps


def test_a_row_without_a_finite_number_has_units_all_the_same() -> None:
    row = torch.tensor([[math.nan, math.inf]], dtype=torch.float64)
    assert bool((unit(row, torch.float32) > 0).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, *FP8])
def test_widening_is_exact(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    for value in (info.max, info.smallest_normal, info.smallest_normal * info.eps):
        assert float(wide(torch.tensor([value], dtype=torch.float32).to(dtype))) == value

"""Changes that keep the meaning are seen to keep it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.tileir import compare, parse, print_module
from tests.unit.tileir.shuffles import shuffled

KERNELS = Path(__file__).parent / "kernels"


@pytest.mark.parametrize("name", ["scaled_rows", "row_softmax", "product", "histogram"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=6, deadline=None)
def test_a_shuffled_kernel_is_the_same(name: str, seed: int) -> None:
    reference = parse((KERNELS / f"{name}.mlir").read_text())
    candidate = parse(print_module(shuffled(reference, seed)))
    result = compare(reference, candidate)
    assert result.same, result.difference
    assert not result.assumes_values
    used = [at for at, to in enumerate(result.parameters) if to is not None]
    assert [result.parameters[at] for at in used] == used

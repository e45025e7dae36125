"""Every one-step change of meaning is found."""

from pathlib import Path

import pytest

from farm.tileir import compare, parse
from tests.unit.tileir.mutations import MUTATIONS, Mutation, mutants

KERNELS = Path(__file__).parent / "kernels"
NAMES = ("scaled_rows", "row_softmax", "product", "histogram")
#: (kernel, line) -> why a change there changes nothing.
HARMLESS: dict[tuple[str, int], str] = {}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_change_of_meaning_is_reported_as_different(mutation: Mutation) -> None:
    tried = 0
    for name in NAMES:
        text = (KERNELS / f"{name}.mlir").read_text()
        reference = parse(text)
        for mutant in mutants(text, mutation):
            result = compare(reference, parse(mutant.text))
            harmless = (name, mutant.line) in HARMLESS
            assert result.same == harmless, f"{name}, line {mutant.line}: {result}"
            assert result.same or result.difference is not None
            tried += 1
    assert tried, "the mutation applies nowhere"

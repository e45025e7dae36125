"""Every one-step change of meaning is found."""

from pathlib import Path

import pytest

from farm.tileir import compare, parse
from tests.unit.tileir.mutations import MUTATIONS, Mutant, Mutation, mutants

KERNELS = Path(__file__).parent / "kernels"
NAMES = ("scaled_rows", "row_softmax", "product", "histogram")
#: (kernel, line) -> why a change there changes nothing.
HARMLESS = {
    ("product", 49): "corrects the sign of a remainder of a block index, which is not negative",
    ("product", 51): "corrects the sign of a remainder of a block index, which is not negative",
    ("row_softmax", 11): "nothing uses this constant",
    ("row_softmax", 12): "nothing uses this constant",
    ("product", 15): "nothing uses this constant",
    ("product", 16): "nothing uses this constant",
    ("product", 17): "nothing uses this constant",
    ("histogram", 9): "nothing uses this constant",
    ("histogram", 10): "nothing uses this constant",
}


def check(mutation: Mutation, most: int | None) -> None:
    tried = 0
    for name in NAMES:
        text = (KERNELS / f"{name}.mlir").read_text()
        reference = parse(text)
        found = list(mutants(text, mutation))
        for mutant in found[-most:] if most else found:
            same(name, text, mutant)
            result = compare(reference, parse(mutant.text))
            assert result.same == ((name, mutant.line) in HARMLESS), f"{name}, line {mutant.line}: {result}"
            assert (result.difference is None) == result.same
            tried += 1
    assert tried, "the mutation applies nowhere"


def same(name: str, text: str, mutant: Mutant) -> None:
    assert mutant.text != text, f"{name}, line {mutant.line}: nothing was changed"


def test_there_are_many_kinds_of_changes() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) >= 50


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_change_of_meaning_is_reported_as_different(mutation: Mutation) -> None:
    check(mutation, most=1)


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_change_of_meaning_is_reported_wherever_it_is_made(mutation: Mutation) -> None:
    check(mutation, most=None)

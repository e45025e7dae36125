"""Golden pairs: what two texts that stand side by side are to each other."""

from pathlib import Path

import pytest

from farm.tileir import Difference, DifferenceKind, compare, parse

PAIRS = Path(__file__).parent / "pairs"
SAME = {
    "rows-in-rust": (5, 0, 1, 2, 3, 10, 6, 7, 8),  # parameters of the reference in the candidate's order
    "product-carried-exchanged": (0, 1, 2, 3, None, 5, 6, 7, 8, None, 10, 11, 12, 13, None),
}
DIFFERENT = {
    "rows-wrong-stride": DifferenceKind.DATA_FLOW,
    "rows-wrong-bound": DifferenceKind.MASK,
    "rows-promise-less": DifferenceKind.FACT,
    "rows-mask-one-dimension": DifferenceKind.MASK,
    "product-stale-norm": DifferenceKind.CARRIED_VALUE,
    "product-other-block": DifferenceKind.DATA_FLOW,
    "softmax-sum-flushes": DifferenceKind.FLUSH,
    "softmax-pads-zero": DifferenceKind.PADDING,
    "histogram-branches-exchanged": DifferenceKind.PREDICATE,
    "histogram-unordered-store": DifferenceKind.TOKEN_ORDER,
}


def texts(name: str) -> tuple[str, str]:
    return (PAIRS / f"{name}.reference.mlir").read_text(), (PAIRS / f"{name}.candidate.mlir").read_text()


@pytest.mark.parametrize("name", SAME)
def test_a_pair_that_means_the_same_is_the_same(name: str) -> None:
    reference, candidate = texts(name)
    result = compare(parse(reference), parse(candidate))
    assert result.same, result.difference
    assert result.parameters == SAME[name]


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_pair_that_differs_is_told_apart_by_kind_and_place(name: str) -> None:
    reference, candidate = texts(name)
    difference = compare(parse(reference), parse(candidate)).difference
    assert isinstance(difference, Difference)
    assert difference.kind is DIFFERENT[name], difference
    assert difference.reference is not None
    assert difference.reference.span is not None
    assert difference.sentence.endswith(".")


def test_every_pair_in_the_folder_is_in_a_table() -> None:
    names = {path.name.rsplit(".", 2)[0] for path in PAIRS.glob("*.mlir")}
    assert names == set(SAME) | set(DIFFERENT)

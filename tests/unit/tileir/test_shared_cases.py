"""The handed pairs of real kernels, by their truth table."""

import os
import re
from pathlib import Path

import pytest

from farm.tileir import compare, parse

SHARED = os.environ.get("TILEFARM_SHARED")
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED, reason="TILEFARM_SHARED names no folder"),
]
_ROW = re.compile(r"^\| (\S+\.mlir) \| (\S+\.mlir) \| (same|different) \|", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    if not SHARED:
        return [("", "", "")]
    return _ROW.findall((Path(SHARED) / "cases" / "ir" / "README.md").read_text())


@pytest.mark.parametrize(("reference", "candidate", "expected"), rows())
def test_a_pair_is_answered_as_the_table_says(reference: str, candidate: str, expected: str) -> None:
    folder = Path(SHARED or "") / "cases" / "ir"
    result = compare(parse((folder / reference).read_text()), parse((folder / candidate).read_text()))
    assert ("same" if result.same else "different") == expected, result
    assert result.rules or result.same


def test_the_table_has_rows() -> None:
    assert len(rows()) >= 20

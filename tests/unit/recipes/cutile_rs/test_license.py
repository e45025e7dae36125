"""Generated Rust opens with the license lines of the Python that it comes from."""

import pytest

from farm.recipes.cutile_rs.license import licensed
from tests.unit.recipes.cutile_rs.builders import gym_with, minigym, op_named

REGISTER = "@register_impl('probe', backend='cutile')\ndef probe(x):\n    return x\n"


def test_the_built_in_repos_line_opens_the_file() -> None:
    text = licensed("// relu: translated\n", minigym(), op_named(minigym(), "relu"))
    assert text == "// SPDX-License-Identifier: MIT\n\n// relu: translated\n"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("# Copyright 2026 Somebody\n# SPDX-License-Identifier: MIT\n\n", "// Copyright 2026 Somebody\n//"),
        ("# just a remark\n", "fn f"),
        ("", "fn f"),
        ("import os\n# SPDX-License-Identifier: MIT\n", "fn f"),
    ],
)
def test_only_license_lines_at_the_very_top_are_taken(head: str, expected: str) -> None:
    tree = gym_with(head + REGISTER)
    assert licensed("fn f() {}\n", tree, op_named(tree, "probe")).startswith(expected)

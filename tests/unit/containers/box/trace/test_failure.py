"""A file that cannot be collected is named with the place where its import failed."""

import pytest

from containers.box.trace.failure import in_words

BROKEN = """\
tests/ops/test_add_bias.py:5: in <module>
    from minigym.ops import add_bias
src/minigym/ops/cutile/__init__.py:5: in <module>
    from .relu import relu
E     File "/work/src/minigym/ops/cutile/relu.py", line 7
E       def (
E           ^
E   SyntaxError: invalid syntax
"""
MISSING = """\
ImportError while importing test module '/work/tests/ops/test_relu.py'.
Traceback:
tests/ops/test_relu.py:3: in <module>
    import transformers
E   ModuleNotFoundError: No module named 'transformers'
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BROKEN, "src/minigym/ops/cutile/relu.py:7: SyntaxError: invalid syntax"),
        (MISSING, "tests/ops/test_relu.py:3: ModuleNotFoundError: No module named 'transformers'"),
        (
            BROKEN.replace("/work/", "/usr/lib/"),
            "/usr/lib/src/minigym/ops/cutile/relu.py:7: SyntaxError: invalid syntax",
        ),
        ("could not import 'x'\n", "could not import 'x'"),
        ("", "unknown"),
    ],
)
def test_the_last_place_and_the_last_line_are_said(text: str, words: str) -> None:
    assert in_words(text, "/work") == words

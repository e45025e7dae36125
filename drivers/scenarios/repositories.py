"""The target repos that scenarios are played on: the built-in one with one op more, and one of texts."""

from collections.abc import Mapping
from pathlib import Path

from farm.capture import read_tree
from farm.data import builtin_repos
from farm.tree import Entry, Mode, Tree

CORPUS = Path(__file__).parent / "corpus"
#: The op that the translator refuses, so that agents have something to do.
SQUARE = "square"
_OPS = "src/minigym/ops"
#: What the built-in repository's files say more when it has the op.
_MORE: Mapping[str, str] = {
    f"{_OPS}/cutile/__init__.py": "\nfrom .square import square  # noqa: E402\n",
    f"{_OPS}/__init__.py": "\nfrom .ops import square  # noqa: E402\n",
    f"{_OPS}/ops.py": '\n\n@dispatch("square")\ndef square(x: torch.Tensor) -> torch.Tensor:\n'
    '    """x @ x. `x`: (side, side)."""\n    raise _missing("square")\n',
}
#: One word a line, long enough to be told from others.
_WORDS = ("brook", "cedar", "flint", "grove", "heath", "larch", "marsh", "ridge")


def gym() -> Tree:
    """The built-in repository with `square`, a matrix product."""
    tree = dict(read_tree(builtin_repos()["minigym"]))
    for path, text in _MORE.items():
        tree[path] = Entry(tree[path].mode, tree[path].data + text.encode())
    for path, name in ((f"{_OPS}/cutile/{SQUARE}.py", "source"), (f"tests/ops/test_{SQUARE}.py", "tests")):
        tree[path] = Entry(Mode.FILE, (CORPUS / SQUARE / f"{name}.py.txt").read_bytes())
    return tree


def texts(number: int) -> Tree:
    """A repository of so many texts, t01, t02, .., for the recipe plain-copy."""
    return {f"ops/t{n:02}.txt": Entry(Mode.FILE, _text(n)) for n in range(1, number + 1)}


def _text(number: int) -> bytes:
    lines = [f"{number} {word} {number * place}" for place, word in enumerate(_WORDS, 1)]
    return ("\n".join(lines) + "\n").encode()

"""What agents read in the recipe's folder gives no hidden op away: scanned as a job's box is scanned."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.capture import read_tree
from farm.hiding import Bare
from farm.leak import LeakKind, LeakReport
from farm.mountindex import Mount
from farm.op import Op
from farm.recipes import Conversion, load, read_table
from farm.tree import Tree
from tests.box_program import MINIGYM, RECIPE
from workers.gitrepo import Git
from workers.leaks import LeakScanner
from workers.workspace import make_workspace, visible


@pytest.fixture(scope="module")
def conversion() -> Conversion:
    return load("cutile-rs", read_table((RECIPE / "recipe.toml").read_text(encoding="utf-8")))


@pytest.fixture
def at(tmp_path: Path) -> Git:
    return Git(tmp_path / "state" / "gitconfig", os.environ)


@pytest.fixture(scope="module")
def tilegym(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The tree of the handed repository."""
    folder = tmp_path_factory.mktemp("tilegym") / "repo"
    bundle = shared / "targets" / "tilegym.bundle"
    subprocess.run(("git", "clone", "-q", "-b", "main", str(bundle), str(folder)), check=True)
    return read_tree(folder)


def hidden(conversion: Conversion, tree: Tree) -> Iterator[tuple[Op, Bare]]:
    """Every op whose implementation the tree has, as a job for it sees the tree."""
    for op in conversion.inventory(tree):
        bare = conversion.bare(tree, op)
        if any(path.endswith(".rs") for path in bare.hidden):
            yield op, bare


def scanned(op: Op, bare: Bare, recipe: Path, folder: Path, at: Git) -> LeakReport:
    workspace = make_workspace(at, visible(bare), folder / "workspace", 1)
    scanner = LeakScanner(folder / "cache", None)
    return scanner.scan(bare, workspace, (), op.source_files, (Mount(name="recipe", folder=recipe),))


def test_the_texts_give_nothing_of_the_built_in_repository_away(
    conversion: Conversion, tmp_path: Path, at: Git
) -> None:
    found = {
        op.name: scanned(op, bare, RECIPE, tmp_path / op.name, at)
        for op, bare in hidden(conversion, read_tree(MINIGYM))
    }
    assert list(found) == ["silu_and_mul"]
    assert found["silu_and_mul"].clean, found["silu_and_mul"].summary


def test_the_texts_give_nothing_of_the_handed_repository_away(
    conversion: Conversion, tilegym: Tree, tmp_path: Path, at: Git
) -> None:
    found = {
        op.name: scanned(op, bare, RECIPE, tmp_path / op.name, at) for op, bare in hidden(conversion, tilegym)
    }
    assert sorted(found) == ["attention_sink", "bmm", "matmul", "silu_and_mul", "swiglu"]
    assert {name: report.summary for name, report in found.items() if not report.clean} == {}


def with_answer(bare: Bare, recipe: Path, file: str) -> None:
    """Plant a third of the hidden kernels in a text of the recipe."""
    answer = next(entry.data for path, entry in bare.hidden.items() if path.endswith("kernel.rs"))
    lines = answer.decode().splitlines()
    body = "\n".join(lines[len(lines) // 3 : 2 * len(lines) // 3])
    text = recipe / file
    text.write_text(f"{text.read_text(encoding='utf-8')}\n```rust\n{body}\n```\n", encoding="utf-8")


def places(report: LeakReport) -> set[tuple[LeakKind, str, str]]:
    return {(leak.kind, leak.place, leak.path) for leak in report.findings}


@pytest.mark.parametrize("file", ["references/rules.md", "agents/kernel.md"])
def test_an_answer_planted_in_a_text_is_found(file: str, conversion: Conversion, tmp_path: Path, at: Git) -> None:
    recipe = shutil.copytree(RECIPE, tmp_path / "recipe")
    op, bare = next(hidden(conversion, read_tree(MINIGYM)))
    with_answer(bare, recipe, file)
    report = scanned(op, bare, recipe, tmp_path, at)
    assert not report.clean
    assert (LeakKind.TEXT, "recipe", file) in places(report)


def test_an_answer_of_the_handed_repository_is_found_for_each_of_its_ops(
    conversion: Conversion, tilegym: Tree, tmp_path: Path, at: Git
) -> None:
    file = "references/examples/blend.md"
    for op, bare in hidden(conversion, tilegym):
        recipe = shutil.copytree(RECIPE, tmp_path / op.name / "recipe")
        with_answer(bare, recipe, file)
        found = places(scanned(op, bare, recipe, tmp_path / op.name, at))
        assert (LeakKind.TEXT, "recipe", file) in found, op.name


#: Words in a row that nobody writes twice by chance.
SENTENCE = 9


def sentences(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z_&]+", text.lower())
    return {tuple(words[at : at + SENTENCE]) for at in range(len(words) - SENTENCE + 1)}


def test_no_sentence_is_copied_from_the_handed_material(shared: Path, tilegym: Tree) -> None:
    handed = [path.read_text(encoding="utf-8") for path in sorted((shared / "seeds").glob("*.txt"))]
    handed += [
        entry.data.decode("utf-8", "replace")
        for path, entry in tilegym.items()
        if path.endswith(".md") and path.startswith("skills/")
    ]
    assert len(handed) > 10
    theirs = set().union(*map(sentences, handed))
    for path in sorted(RECIPE.rglob("*.md")):
        prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert sentences(prose) & theirs == set(), path

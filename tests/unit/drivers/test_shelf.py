"""Recipes by name, and recipes that are given as folders."""

import shutil
from pathlib import Path

import pytest

from drivers.shelf import FolderShelf
from farm.data import config_folder
from farm.errors import ConfigurationError
from workers.frozen import FrozenRecipes

RECIPES = config_folder() / "recipes"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "desk" / "mine"
    shutil.copytree(RECIPES / "plain-copy", folder)
    return folder


def test_a_folder_is_a_recipe_and_workers_find_a_copy_of_it(mine: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    shelf = FolderShelf(RECIPES, state)
    assert shelf.folder(str(mine)) == mine
    assert shelf.names() == ("cutile-rs", "plain-copy")
    assert shelf.adopt(str(mine)) == "mine"
    shutil.rmtree(mine)
    assert shelf.adopt("mine") == "mine"
    assert shelf.names() == ("cutile-rs", "mine", "plain-copy")
    frozen = FrozenRecipes(RECIPES, state).folder("r-1", "mine")
    assert (frozen / "recipe.toml").read_bytes() == (RECIPES / "plain-copy" / "recipe.toml").read_bytes()


def test_a_later_copy_takes_the_place_of_an_earlier_one_and_runs_keep_theirs(mine: Path, tmp_path: Path) -> None:
    shelf, frozen = FolderShelf(RECIPES, tmp_path / "state"), FrozenRecipes(RECIPES, tmp_path / "state")
    shelf.adopt(str(mine))
    before = (frozen.folder("r-1", "mine") / "recipe.toml").read_text()
    (mine / "recipe.toml").write_text("changed")
    (mine / "more").mkdir()
    (mine / "more" / "a.md").write_text("a")
    shelf.adopt(str(mine))
    assert (shelf.folder("mine") / "recipe.toml").read_text() == "changed"
    assert (frozen.folder("r-1", "mine") / "recipe.toml").read_text() == before
    assert (frozen.folder("r-2", "mine") / "more" / "a.md").read_text() == "a"


def test_a_folder_called_as_one_of_the_farms_recipes_is_refused(mine: Path, tmp_path: Path) -> None:
    taken = mine.rename(mine.with_name("cutile-rs"))
    shelf = FolderShelf(RECIPES, tmp_path / "state")
    with pytest.raises(ConfigurationError, match="otherwise"):
        shelf.adopt(str(taken))
    assert shelf.adopt("cutile-rs") == "cutile-rs"


def test_what_is_neither_a_name_nor_a_folder_is_refused(tmp_path: Path) -> None:
    shelf = FolderShelf(RECIPES, tmp_path / "state")
    for name in ("nosuch", str(tmp_path)):
        with pytest.raises(ConfigurationError, match="there is cutile-rs, plain-copy"):
            shelf.folder(name)

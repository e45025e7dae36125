"""A run keeps the recipe that it began with."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from farm.errors import ConfigurationError
from workers.frozen import FrozenRecipes


@pytest.fixture
def recipes(tmp_path):
    folder = tmp_path / "config" / "mine"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text("as it was")
    return folder.parent


def test_an_edit_concerns_later_runs_only(recipes, tmp_path):
    frozen = FrozenRecipes(recipes, tmp_path / "state")
    first = frozen.folder("r-1", "mine") / "recipe.toml"
    (recipes / "mine" / "recipe.toml").write_text("edited")
    assert (frozen.folder("r-1", "mine") / "recipe.toml").read_text() == first.read_text() == "as it was"
    assert (frozen.folder("r-2", "mine") / "recipe.toml").read_text() == "edited"


def test_a_forgotten_run_begins_with_the_recipe_of_then(recipes, tmp_path):
    frozen = FrozenRecipes(recipes, tmp_path / "state")
    frozen.folder("r-1", "mine")
    frozen.forget("r-1")
    frozen.forget("r-never")
    (recipes / "mine" / "recipe.toml").write_text("edited")
    assert (frozen.folder("r-1", "mine") / "recipe.toml").read_text() == "edited"


def test_a_recipe_that_is_gone_does_not_stop_a_run_that_has_it(recipes, tmp_path):
    frozen = FrozenRecipes(recipes, tmp_path / "state")
    frozen.folder("r-1", "mine")
    shutil.rmtree(recipes / "mine")
    assert (frozen.folder("r-1", "mine") / "recipe.toml").exists()
    with pytest.raises(ConfigurationError, match="no recipe 'mine' any more"):
        frozen.folder("r-2", "mine")


def test_workers_that_freeze_at_once_get_one_whole_copy(recipes, tmp_path):
    for number in range(50):
        (recipes / "mine" / f"{number}.txt").write_text("x")
    frozen = FrozenRecipes(recipes, tmp_path / "state")
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: frozen.folder("r-1", "mine"), range(16)))
    assert {len(list(folder.iterdir())) for folder in folders} == {51}
    assert [entry.name for entry in folders[0].parent.iterdir()] == ["mine"]

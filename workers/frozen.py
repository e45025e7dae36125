"""A run's recipe as it was when the run began: what a person edits later concerns later runs."""

import os
import shutil
import tempfile
from pathlib import Path

from farm.errors import ConfigurationError


def given_recipes(state: Path) -> Path:
    """Where recipes lie that were given to a farm as folders, by name."""
    return state / "given-recipes"


class FrozenRecipes:
    """Copies of recipe folders, one for each run, made when the run is first worked on here."""

    def __init__(self, recipes: Path, state: Path) -> None:
        self._recipes, self._given = recipes, given_recipes(state)
        self._frozen = state / "recipes"

    def folder(self, run: str, recipe: str) -> Path:
        """The run's own copy of the recipe's folder. Raises ConfigurationError when there is neither."""
        frozen = self._frozen / run / recipe
        if not frozen.exists():
            own, given = self._recipes / recipe, self._given / recipe
            self._freeze(given if given.is_dir() and not own.is_dir() else own, frozen)
        return frozen

    def forget(self, run: str) -> None:
        """Remove the run's copy: it has ended, and what is retried later begins with the recipe of then."""
        shutil.rmtree(self._frozen / run, ignore_errors=True)

    def _freeze(self, recipe: Path, frozen: Path) -> None:
        if not recipe.is_dir():
            raise ConfigurationError(f"the farm has no recipe {recipe.name!r} any more: there is no {recipe}")
        frozen.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=frozen.parent, prefix=".") as partial:
            copy = Path(partial) / recipe.name
            shutil.copytree(recipe, copy)
            try:
                os.rename(copy, frozen)
            except OSError:
                if not frozen.exists():  # else another worker was first: its copy is as good
                    raise

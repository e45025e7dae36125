"""The recipes that this farm has: those of config/recipes, and those that were given to it as folders."""

import filecmp
import os
import shutil
import tempfile
from pathlib import Path

from farm.errors import ConfigurationError
from workers.frozen import given_recipes


class FolderShelf:
    """Recipes as folders of a folder, and given ones in a state folder."""

    def __init__(self, root: Path, state: Path | None = None) -> None:
        """Without `state` no recipe can be given."""
        self._root = root
        self._given = None if state is None else given_recipes(state)

    def names(self) -> tuple[str, ...]:
        """All recipe names."""
        return tuple(sorted({*_names(self._root), *(() if self._given is None else _names(self._given))}))

    def folder(self, name: str) -> Path:
        """The folder of one, given by name or path. Raises ConfigurationError when there is none."""
        if name in _names(self._root):
            return self._root / name
        if self._given is not None and name in _names(self._given):
            return self._given / name
        if (Path(name) / "recipe.toml").is_file():
            return Path(name).resolve()
        known = ", ".join(self.names()) or "none"
        raise ConfigurationError(
            f"there is no recipe {name!r} and no folder of that name with a recipe.toml; there is {known}"
        )

    def adopt(self, name: str) -> str:
        """The name under which workers find a recipe given by name or path; a folder is copied, so that later
        changes of it concern later runs. Raises ConfigurationError."""
        folder = self.folder(name)
        if folder.parent in (self._root, self._given):
            return folder.name
        if self._given is None or folder.name in _names(self._root):
            raise ConfigurationError(
                f"{folder} is called as a recipe that the farm has; call the folder, and `name`, otherwise"
            )
        _copy(folder, self._given / folder.name)
        return folder.name


def _names(root: Path) -> set[str]:
    return {path.parent.name for path in root.glob("*/recipe.toml")}


def _copy(folder: Path, to: Path) -> None:
    """In place of what is there, unless that is the same."""
    if to.exists() and _same(filecmp.dircmp(folder, to, ignore=[], hide=[])):
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".") as room:
        shutil.copytree(folder, Path(room) / "new")
        if to.exists():
            os.rename(to, Path(room) / "old")
        os.rename(Path(room) / "new", to)


def _same(found: "filecmp.dircmp[str]") -> bool:
    differs = found.left_only or found.right_only or found.funny_files
    _, changed, unread = filecmp.cmpfiles(found.left, found.right, found.common_files, shallow=False)
    return not (differs or changed or unread) and all(_same(below) for below in found.subdirs.values())

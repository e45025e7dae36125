"""Where the files lie that come with the farm: in a wheel under farm/_data, in a checkout at their own places."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def config_folder() -> Path:
    """The folder with farm.toml and the recipes."""
    packaged = _PACKAGE / "_data" / "config"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "config"


def builtin_repos() -> dict[str, Path]:
    """The folder of each `builtin:NAME` target repo."""
    packaged = _PACKAGE / "_data" / "minigym"
    return {"minigym": packaged if packaged.is_dir() else _PACKAGE.parent / "tests" / "data" / "minigym"}


def attacked_repo() -> Path:
    """The folder of the target repo against which the corpus of attacks is written; it runs on a CPU."""
    packaged = _PACKAGE / "_data" / "cpugym"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "tests" / "data" / "cpugym"

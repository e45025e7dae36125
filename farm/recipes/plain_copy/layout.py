"""Where the texts and their copies lie."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SUFFIX = ".txt"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The table `[layout]` of recipe.toml. Folders are relative to the repository."""

    #: For the check of recipe files, which pydantic does.
    __pydantic_config__ = {"extra": "forbid"}

    source: str  #: what the texts are called
    target: str  #: what the copies are called
    source_folder: str  #: folder of the texts
    target_folder: str  #: folder of the copies

    @staticmethod
    def problems(table: Mapping[str, Any]) -> Iterator[str]:
        """See farm.recipes.Layout."""
        if table.get("source_folder") == table.get("target_folder"):
            yield "target_folder: it is the source folder"

    def text(self, op: str) -> str:
        """Path of an op's text."""
        return f"{self.source_folder}/{op}{SUFFIX}"

    def copy(self, op: str) -> str:
        """Path of an op's copy."""
        return f"{self.target_folder}/{op}{SUFFIX}"

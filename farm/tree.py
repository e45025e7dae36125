"""A tree of files as values: paths to modes and bytes, as git sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """The three kinds of entries a tree may hold, as git writes them."""

    FILE = "100644"  #: a plain file
    EXECUTABLE = "100755"  #: a plain file that may be executed
    LINK = "120000"  #: a symbolic link; data is its target


@dataclass(frozen=True)
class Entry:
    """One file or link."""

    mode: Mode
    data: bytes


#: Paths use `/`, are relative, and carry undecodable bytes as surrogate escapes.
Tree = Mapping[str, Entry]

"""The bare base: what a box may see, and what was taken out of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Bare:
    """A base tree without one op's target implementation."""

    tree: Tree  #: the bare base; what a patch applies to and what lands beside it
    withheld: tuple[str, ...]  #: paths of `tree` that the box must not read (text that may hold answers)
    hidden: Tree  #: removed files whole, and edited files in their original form
    symbols: tuple[str, ...]  #: entry and export names of the hidden implementation
    siblings: tuple[str, ...]  #: paths of declared look-alikes: reported, not refused
    change_set: tuple[str, ...] = ()  #: paths that a patch for the op may touch
    crate: Mapping[str, bytes] = field(default_factory=dict)
    #: files of the cargo crate whose dependencies are compiled ahead, by path inside it; empty: there is none

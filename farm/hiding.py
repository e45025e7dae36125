"""The bare base: what a box may see, and what was taken out of it."""

from dataclasses import dataclass

from farm.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Bare:
    """A base tree without one op's target implementation."""

    tree: Tree  #: the bare base; what a patch applies to and what lands beside it
    withheld: tuple[str, ...]  #: paths of `tree` that the box must not read (text that may hold answers)
    hidden: Tree  #: removed files whole, and edited files in their original form
    symbols: tuple[str, ...]  #: entry and export names of the hidden implementation
    siblings: tuple[str, ...]  #: paths of declared look-alikes: reported, not refused

"""Conversions by name. A new one is `farm/recipes/<name>/` plus `config/recipes/<name>/`, nothing else.

A conversion's package exports `build(layout) -> Conversion`. Its code is pure: what touches processes or
files goes through the `BoxIO` it is given, and programs of the box are called by name
(`python -m containers.box.trace ...`), never imported.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from farm.errors import ConfigurationError
from farm.gates import GateReport
from farm.op import Op
from farm.orders import BoxOrder
from farm.pipeline.stage import Reply, Stage

if TYPE_CHECKING:
    from farm.changeset import Violation
    from farm.hiding import Bare
    from farm.layout import Layout
    from farm.patch import Patch
    from farm.tree import Tree


@dataclass(frozen=True, kw_only=True)
class ProcessResult:
    """How a process in the box ended."""

    exit_code: int  #: negative: killed by that signal
    output: str  #: stdout and stderr together, as text
    timed_out: bool
    seconds: float


class BoxIO(Protocol):
    """The box as a conversion's stage programs see it."""

    workspace: Path  #: the tree to work on
    out: Path  #: the artifact folder
    toolchain: Path  #: root of the toolchain, read-only

    def run(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> ProcessResult:
        """Run a process; its whole tree is killed at the time limit. `env` is the whole environment."""

    def log(self, text: str) -> None:
        """Append a line to the stage's log and renew the heartbeat."""


StageProgram = Callable[[BoxOrder, BoxIO], Reply]


class Conversion(Protocol):
    """A conversion kind's pure code."""

    def inventory(self, tree: "Tree") -> tuple[Op, ...]:
        """The ops of a tree, by reading its syntax. Raises RepositoryError when the layout is missing."""

    def bare(self, tree: "Tree", op: Op) -> "Bare":
        """The tree without the op's target implementation, and what was taken out."""

    def check(self, bare: "Bare", op: Op, patch: "Patch") -> "tuple[Violation, ...]":
        """What a patch for the op does beyond what it may: paths, modes, edits of tests. Reads syntax alone."""

    def program(self, stage: Stage) -> StageProgram | None:
        """The stage's program, or None when the conversion has none for it."""

    def judge(self, order: BoxOrder, io: BoxIO) -> GateReport:
        """Judge the tree in `io.workspace` (bare base plus patch) inside a gate box."""


def load(name: str, layout: "Layout") -> Conversion:
    """The conversion called `name`, for a layout. Raises ConfigurationError when there is no such package."""
    try:
        module = importlib.import_module(f"farm.recipes.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"no conversion {name!r}: farm/recipes has no such package") from error
    return cast(Conversion, module.build(layout))

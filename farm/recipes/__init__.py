"""Conversions by name. A new one is `farm/recipes/<name>/` plus `config/recipes/<name>/`, nothing else.

A conversion's package exports `Layout`, a frozen dataclass of what the recipe's table `[layout]` holds
(see `Layout` here), and `build(layout) -> Conversion`. Its code is pure: what touches processes or files goes
through the `BoxIO` it is given, and programs of the box are called by name (`python -m containers.box.trace ...`),
never imported. Boxes read the table with the standard library alone, hence no pydantic here.
"""

import importlib
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from farm.codec import CodecError, decode
from farm.errors import ConfigurationError
from farm.gates import GateReport
from farm.op import Op
from farm.orders import BoxOrder, BuildReport, StageRecord
from farm.pipeline.stage import Finding, Reply, Stage, ValidatorExit

if TYPE_CHECKING:
    from farm.bundle import OpNames
    from farm.changeset import Violation
    from farm.hiding import Bare
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


@dataclass(frozen=True, kw_only=True)
class Validator:
    """A program of the box that judges what a stage left behind.

    It reads the box's places from the environment as the box's own program does (TILEFARM_ORDER, TILEFARM_WORK,
    TILEFARM_OUT, TILEFARM_RECIPE, TILEFARM_TOOLCHAIN), ends with 0 (good), 1 (bad) or 2 (could not be run), and
    its last line is the message.
    """

    name: str  #: as agents call it, and as in replies and records
    argv: tuple[str, ...]  #: run in the workspace, with the box's environment
    limit_s: float = 600.0  #: wall clock, seconds


class Exit(IntEnum):
    """How a validator ends."""

    GOOD = 0  #: what it looked at is as it should be
    BAD = 1  #: it is not; the lines before the message say where and what to do
    NOT_RUN = 2  #: nothing is known: a tool or an earlier artifact is missing


@dataclass(frozen=True, kw_only=True)
class Validated:
    """What a validator found out."""

    exit: Exit
    message: str  #: one line; of a bad one `OWNER: sentence`, with the owner whose part it is
    findings: tuple[Finding, ...] = ()


def box_validator(name: str) -> Validator:
    """The validator that is the conversion's own function `name`, run by the box's program for that."""
    return Validator(name=name, argv=(sys.executable, "-P", "-m", "containers.box.validate", name))


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

    def build(self, order: BoxOrder, io: BoxIO) -> BuildReport:
        """Only build the library of the tree in `io.workspace` and leave it in `io.out` as LIBRARY."""

    def judged(self, bare: "Bare", op: Op, patch: "Patch") -> "Patch":
        """The patch as the gates on a GPU judge it: with the bare base's own tests, whatever it says of them.

        Raises Unsupported when the conversion makes nothing that a GPU could run.
        """

    def names(self, tree: "Tree", op: Op) -> "OpNames":
        """What those gates must know of the op in the judged tree. Raises ConfigurationError, Unsupported."""

    def validators(self, stage: Stage) -> tuple[Validator, ...]:
        """What is run after an agent's reply, whatever the reply says; `Unvalidated` has none."""

    def validate(self, name: str, order: BoxOrder, io: BoxIO) -> Validated:
        """What the validator `name` says now. Raises UsageError for a name that it does not have."""

    def contradicted(self, stage: Stage, exits: tuple[ValidatorExit, ...]) -> Reply:
        """The reply that stands in place of a good one when not all of the stage's validators are green."""

    def contract(self, order: BoxOrder, io: BoxIO, records: tuple[StageRecord, ...]) -> tuple[Finding, ...]:
        """What a complete route lacks of the files that it owes; empty when it lacks none."""


class Layout(Protocol):
    """Where things lie in a target repo. Each conversion has a dataclass of its own, with at least these."""

    @property
    def source(self) -> str:
        """What is converted, e.g. a backend's name."""

    @property
    def target(self) -> str:
        """What it becomes."""

    @staticmethod
    def problems(table: Mapping[str, Any]) -> Iterator[str]:
        """What is wrong with a table as written, beyond its types: `field: sentence`, one each."""


def layout_kind(name: str) -> type[Layout]:
    """The layout class of the conversion called `name`. Raises ConfigurationError as `load` does."""
    return cast(type[Layout], _package(name).Layout)


def load(name: str, table: Mapping[str, Any]) -> Conversion:
    """The conversion called `name`, for a recipe's table `[layout]`.

    Raises ConfigurationError when there is no such package, or naming the field that is wrong.
    """
    package = _package(name)
    try:
        layout = decode(package.Layout, table, "layout")
    except (CodecError, ValueError) as error:
        raise ConfigurationError(f"recipe.toml: {error}") from error
    return cast(Conversion, package.build(layout))


def read_table(text: str) -> dict[str, Any]:
    """The table `[layout]` in the text of a recipe.toml. Raises ConfigurationError when it is not TOML."""
    try:
        return dict(tomllib.loads(text).get("layout", {}))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"recipe.toml: {error}") from error


def _package(name: str) -> ModuleType:
    module = f"farm.recipes.{name.replace('-', '_')}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ConfigurationError(f"no conversion {name!r}: farm/recipes has no such package") from error

"""A recipe as a person writes it: config/recipes/<name>/recipe.toml, checked before a job is queued."""

import importlib.util
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from farm import agents
from farm.errors import ConfigurationError
from farm.gates import GateName
from farm.pipeline import routes
from farm.pipeline.stage import ExecutorKind, Stage
from farm.recipes import layout_kind

FILE = "recipe.toml"


class Table(BaseModel):
    """A table of a recipe file: no field that is not known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(Table):
    """What one job may use."""

    attempts: int = Field(default=2, ge=1, le=10)
    """Attempts that may fail through an executor's or a kernel's fault."""
    transient_retries: int = Field(default=3, ge=0, le=100)
    """Retries after a hang or a fault of machine or farm."""
    stage_limit_s: float = Field(default=900, gt=0)
    """Wall clock of one stage, seconds."""
    attempt_limit_s: float = Field(default=3600, gt=0)
    """Wall clock of one attempt, seconds."""
    patch_bytes: int = Field(default=1_000_000, gt=0)
    """Size of a patch, bytes."""

    @model_validator(mode="after")
    def _stage_fits(self) -> "Limits":
        if self.stage_limit_s > self.attempt_limit_s:
            raise ValueError("stage_limit_s is longer than attempt_limit_s")
        return self


class Gates(Table):
    """What an op must pass, and what a certificate may stand for."""

    certifiable: tuple[GateName, ...] = ()
    """Gates that may pass by a certificate where the user accepts that."""
    geomean_at_least: float = Field(default=0.95, gt=0)
    """Lower bound of the speedup's interval that passes, ratio."""


class Recipe(Table):
    """The whole of recipe.toml."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    """Name in branches and on the command line; equals the folder's name."""
    summary: str = Field(min_length=1)
    """One sentence for `farm recipe`."""
    conversion: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    """Package farm/recipes/<conversion> (with underscores) that holds the code."""
    layout: dict[str, Any]
    """Where things lie in a target repo, as the conversion's own class says; see farm.recipes.Layout."""
    caps: dict[Stage, int]
    """Most visits of each stage in one attempt."""
    executors: dict[Stage, ExecutorKind]
    """Who performs each stage."""
    limits: Limits = Limits()
    """What one job may use."""
    gates: Gates = Gates()
    """What an op must pass."""

    @property
    def source(self) -> str:
        """What is converted."""
        return str(self.layout["source"])

    @property
    def target(self) -> str:
        """What it becomes."""
        return str(self.layout["target"])

    @field_validator("conversion")
    @classmethod
    def _exists(cls, value: str) -> str:
        if importlib.util.find_spec(f"farm.recipes.{value.replace('-', '_')}") is None:
            raise ValueError(f"farm/recipes has no package for {value!r}")
        return value

    @field_validator("caps", "executors")
    @classmethod
    def _every_stage(cls, value: dict[Stage, Any]) -> dict[Stage, Any]:
        missing = [stage.value for stage in Stage if stage not in value]
        if missing:
            raise ValueError(f"no entry for stage {', '.join(missing)}")
        return value

    @field_validator("caps")
    @classmethod
    def _positive(cls, value: dict[Stage, int]) -> dict[Stage, int]:
        wrong = [stage.value for stage, cap in value.items() if cap < 1]
        if wrong:
            raise ValueError(f"the cap of stage {', '.join(wrong)} is below 1")
        return value


def _layout_errors(conversion: str, table: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a layout table, for a conversion that exists."""
    kind = layout_kind(conversion)
    try:
        TypeAdapter(kind).validate_python(table)
    except ValidationError as error:
        yield from (_line(item) for item in error.errors())
    yield from kind.problems(table)
    if table.get("source") is not None and table.get("source") == table.get("target"):
        yield "target: it is the source"


def recipe_file(path: Path) -> Path:
    """The recipe file of a recipe's folder, or the file itself."""
    return path / FILE if path.is_dir() else path


def detect_errors(path: Path) -> list[str]:
    """All mistakes of a recipe (its folder or file), one line each; empty when there are none."""
    file = recipe_file(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return [f"{file}: there is no such file"]
    except OSError as error:
        return [f"{file}: {error.strerror}"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return [f"{file}: not TOML: {error}"]
    errors, wrong = [], set()
    try:
        Recipe.model_validate(data)
    except ValidationError as error:
        errors = [f"{file}: {_line(item)}" for item in error.errors()]
        wrong = {item["loc"][0] for item in error.errors()}
    if not wrong & {"conversion", "layout"}:
        errors += [f"{file}: layout.{line}" for line in _layout_errors(data["conversion"], data["layout"])]
    if file.name == FILE and data.get("name") != file.resolve().parent.name:
        errors.append(f"{file}: name: the folder is called {file.resolve().parent.name!r}")
    if "caps" not in wrong:
        errors += _route_errors(
            file.with_name(routes.FILE), {Stage(name): cap for name, cap in data["caps"].items()}
        )
    errors += [f"{file.parent}/{problem}" for problem in agents.problems(file.parent)]
    if _wants_agents(data) and not file.with_name(agents.FILE).is_file():
        errors.append(f"{file}: executors: there is no {agents.FILE}, so no stage has an agent")
    return errors


def _route_errors(file: Path, caps: Mapping[Stage, int]) -> list[str]:
    try:
        _, problems = routes.parse_routes(file.read_text(encoding="utf-8"), caps)
    except FileNotFoundError:
        return [f"{file}: there is no such file"]
    except (OSError, UnicodeDecodeError) as error:
        return [f"{file}: it cannot be read: {error}"]
    return [f"{file}: {problem}" for problem in problems]


def _wants_agents(data: Mapping[str, Any]) -> bool:
    table = data.get("executors")
    return isinstance(table, dict) and bool({"agent", "auto"} & {str(kind) for kind in table.values()})


def _line(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"] if part != "[key]")
    return f"{place}: {item['msg'].removeprefix('Value error, ')}"


def load_recipe(path: Path) -> Recipe:
    """The recipe of a folder or file. Raises ConfigurationError listing all mistakes."""
    errors = detect_errors(path)
    if errors:
        raise ConfigurationError("\n".join(errors))
    return Recipe.model_validate(tomllib.loads(recipe_file(path).read_text(encoding="utf-8")))

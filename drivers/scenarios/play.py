"""A scenario with the farm's side of it: which ops are converted, how, and what must come of it. corpus/*.toml.

`[model]` is a scenario file's content; `parts` in it names files of corpus/parts whose visits come after its own.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from drivers.scenarios.repositories import CORPUS
from drivers.scenarios.scenario import Scenario
from farm.errors import ConfigurationError, UsageError
from farm.fault import Fault
from farm.job import FINAL, JobState, ParkReason


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Act(_Part):
    """Something that happens once while the jobs are under way."""

    when: Literal["parked", "asked"]
    """A job is parked; or so many calls have begun."""
    calls: int = Field(default=1, ge=1)
    """How many, for `asked`."""
    does: Literal["raise_budget", "kill_box"]
    """`farm budget RUN USD`; SIGKILL to the pipeline's boxes."""
    usd: str = "1"
    """The new budget, US dollars."""


class Expect(_Part):
    """What must come of each job; of the run, where it says so."""

    state: JobState
    fault: Fault | None = None
    attempts: int = 1
    """Attempts that were made."""
    stages: tuple[str, ...]
    """Replies of all attempts in order: `B-1 agent COMPILED`, owner and class behind the verdict, then what was
    wrong with it: `malformed`, `contradicted`."""
    parked: tuple[ParkReason, ...] = ()
    """Reasons for which it was parked, each once."""
    calls: int | None = Field(default=None, ge=0)
    """Answers that were paid for; unset: `calls_most` says how many at most."""
    calls_most: int | None = Field(default=None, ge=0)
    broken: int = Field(default=0, ge=0)
    """Answers of the run that broke off and were asked for again."""
    refused_share_most: float = Field(default=0.0, ge=0, le=1)
    """Share of the run's requests that may be answered 429 or 529."""
    says: str = ""
    """A text that the job's summary, its trace or one of its replies holds."""
    never: tuple[str, ...] = ()
    """Texts that no tool may have given to an agent."""
    files: int | None = None
    """Things of the output contract that the pipeline's box left, each whole; cutile-rs alone."""

    @model_validator(mode="after")
    def _ends(self) -> "Expect":
        if self.state not in (*FINAL, JobState.AWAITING_GPU, JobState.PARKED):
            raise ValueError(f"no job rests in {self.state}")
        if (self.state is JobState.FAILED) != (self.fault is not None):
            raise ValueError("a failed job has a fault, and no other has one")
        return self


class Play(_Part):
    """One file of the corpus."""

    name: str
    what: str
    """One sentence for people."""
    quick: bool = False
    """Takes a minute at most: `make test` plays it."""
    recipe: Literal["cutile-rs", "plain-copy"]
    ops: tuple[str, ...] = Field(default=(), max_length=64)
    texts: int = Field(default=0, ge=0, le=64)
    """For plain-copy: so many ops t01, t02, .. instead."""
    options: tuple[str, ...] = ()
    """Further words of `farm submit`."""
    settings: dict[str, dict[str, str | int | float]] = {}
    """Settings of the farm, by section."""
    limit_s: float = Field(default=120.0, gt=0)
    """The jobs must rest within this time, seconds."""
    edits: tuple[tuple[str, str, str], ...] = ()
    """Files of the target repo, a text in them, and what stands there instead."""
    acts: tuple[Act, ...] = ()
    expect: Expect
    model: Scenario | None = None
    """What the model plays; unset: nobody is there, and nobody may be asked."""

    @property
    def names(self) -> tuple[str, ...]:
        """The ops that are converted."""
        return self.ops or tuple(f"t{n:02}" for n in range(1, self.texts + 1))


def load_play(path: Path) -> Play:
    """The play of a file. Raises ConfigurationError that lists every mistake."""
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        if isinstance(values.get("model"), dict):
            values["model"] = _model(path, dict(values["model"]))
        return Play.model_validate({"name": path.stem, **values})
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise ConfigurationError("\n".join([f"{len(lines)} mistake(s) in {path}:", *lines])) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _model(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The scenario's values, with the visits of the parts that it names behind its own."""
    visits = list(values.pop("visits", ()))
    for part in values.pop("parts", ()):
        visits += tomllib.loads((path.parent / "parts" / f"{part}.toml").read_text(encoding="utf-8"))["visits"]
    return {"name": path.stem, **values, "visits": visits, "folder": path.parent}


def corpus(folder: Path = CORPUS) -> Iterator[Play]:
    """All plays, by name."""
    for path in sorted(folder.glob("*.toml")):
        yield load_play(path)


def chosen(names: tuple[str, ...], *, quick: bool = False) -> tuple[Play, ...]:
    """The plays of these names, or all. Raises UsageError."""
    plays = {play.name: play for play in corpus()}
    unknown = [name for name in names if name not in plays]
    if unknown:
        raise UsageError(f"there is no scenario {', '.join(unknown)}; there are {', '.join(plays)}")
    picked = [plays[name] for name in names] if names else list(plays.values())
    return tuple(play for play in picked if play.quick or not quick)

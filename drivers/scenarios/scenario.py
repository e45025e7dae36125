"""Scenario files: what a model would answer at each turn of each visit, and which faults come first.

TOML (or JSON with the same names). Which turn is due is read from the request alone: the visit's facts from the
table in the first user message, the turn from the number of assistant messages so far. A scenario thus survives
restarts of whoever asks; only the counts of used faults are the server's.

In `text`, `thinking` and strings of a tool's input, `{{NAME}}` is a fact of the table (`{{op}}`) and
`{{file:PATH}}` the content of a file beside the scenario.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from farm.errors import ConfigurationError

#: A row of a Markdown table with two columns.
_FACT = re.compile(r"^\|\s*([A-Za-z_][\w -]*?)\s*\|\s*(.*?)\s*\|\s*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{\s*(?:(file):\s*)?([^{}]+?)\s*\}\}")

StopReason = Literal[
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Fault(_Part):
    """Something that goes wrong instead of, or in the middle of, an answer."""

    times: int = Field(default=1, ge=1)
    """How often it happens (to each op and attempt, where a turn has it) before it is used up."""
    for_s: float | None = Field(default=None, gt=0)
    """Instead of `times`: it happens to every request from the first one on, seconds."""
    delay_s: float = Field(default=0.0, ge=0)
    """Silence before the answer begins, seconds; alone, the answer itself is whole."""
    status: int | None = Field(default=None, ge=400, le=599)
    """The answer is this HTTP status, with the error type that the API documents for it."""
    retry_after_s: int | None = Field(default=None, ge=0)
    """Value of the retry-after header beside `status`, seconds."""
    should_retry: bool | None = None
    """Value of the x-should-retry header beside `status`."""
    cut_after: int | None = Field(default=None, ge=0)
    """The connection breaks after so many events of the stream."""
    error_after: int | None = Field(default=None, ge=0)
    """After so many events comes an error event, and the stream ends."""
    stall_after: int | None = Field(default=None, ge=0)
    """After so many events comes silence of `stall_s`, then the rest."""
    stall_s: float = Field(default=1.0, ge=0)
    """Length of that silence, seconds."""
    error: str = "overloaded_error"
    """Type of the error event."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Fault":
        kinds = (self.status, self.cut_after, self.error_after, self.stall_after)
        if sum(kind is not None for kind in kinds) > 1:
            raise ValueError("give one of status, cut_after, error_after, stall_after")
        return self


class ToolCall(_Part):
    """A tool_use block."""

    name: str
    input: dict[str, Any] = {}


class Turn(_Part):
    """One answer of the model: thinking, then text, then tool calls."""

    text: str = ""
    thinking: str = ""
    tools: tuple[ToolCall, ...] = ()
    stop_reason: StopReason | None = None
    """Unset: tool_use with tool calls, else end_turn."""
    delay_s: float = Field(default=0.0, ge=0)
    """Silence before the first event, seconds."""
    token_delay_s: float = Field(default=0.0, ge=0)
    """Silence between two pieces of an answer, seconds."""
    faults: tuple[Fault, ...] = ()
    """What happens first to those who ask for this turn, in this order."""

    @property
    def reason(self) -> StopReason:
        """Why the answer stops."""
        return self.stop_reason or ("tool_use" if self.tools else "end_turn")


class Visit(_Part):
    """The turns of one conversation. What is unset or `*` fits any."""

    stage: str = "*"
    visit: int | None = None
    attempt: int | None = None
    op: str | None = None
    turns: tuple[Turn, ...] = Field(min_length=1)
    last_repeats: bool = False
    """The last turn answers all further requests: an agent that never ends."""

    def fits(self, facts: Mapping[str, str]) -> bool:
        """Whether a conversation with these facts is this visit."""
        wanted = {"stage": None if self.stage == "*" else self.stage, "op": self.op}
        wanted |= {"visit": _text(self.visit), "attempt": _text(self.attempt)}
        return all(value is None or facts.get(name) == value for name, value in wanted.items())


class Scenario(_Part):
    """What the server plays."""

    name: str
    simultaneous: int | None = Field(default=None, ge=1)
    """Requests that may run at once; one more is answered 429."""
    retry_after_s: int = Field(default=1, ge=0)
    """What such a 429 says in retry-after, seconds."""
    cache_minimum_tokens: int = Field(default=1024, ge=0)
    """Shorter prefixes are not cached."""
    delay_s: float = Field(default=0.0, ge=0)
    """Silence before each answer, seconds."""
    token_delay_s: float = Field(default=0.0, ge=0)
    """Silence between two pieces of every answer, seconds."""
    faults: tuple[Fault, ...] = ()
    """What happens first to whoever asks, in this order."""
    visits: tuple[Visit, ...] = ()
    folder: Path = Field(default=Path(), exclude=True)
    """Where files of `{{file:...}}` lie."""

    def visit(self, facts: Mapping[str, str]) -> Visit | None:
        """The first visit that fits."""
        return next((visit for visit in self.visits if visit.fits(facts)), None)


def load(path: Path) -> Scenario:
    """The scenario in a file. Raises ConfigurationError that lists every mistake."""
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return Scenario.model_validate({"name": path.stem, **values, "folder": path.parent})
    except (OSError, ValueError) as error:
        if isinstance(error, ValidationError):
            lines = [f"  {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
            raise ConfigurationError("\n".join([f"{len(lines)} mistake(s) in {path}:", *lines])) from None
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def facts_of(text: str) -> dict[str, str]:
    """The rows of the tables in a text, names in lower case; the first of a name counts."""
    found: dict[str, str] = {}
    for name, value in _FACT.findall(text):
        found.setdefault(name.lower(), value)
    return found


def filled(value: Any, facts: Mapping[str, str], folder: Path) -> Any:
    """A text or JSON value with its placeholders replaced. Raises ConfigurationError for one that is unknown."""
    match value:
        case str():
            return _PLACEHOLDER.sub(lambda found: _replacement(found[1], found[2], facts, folder), value)
        case dict():
            return {name: filled(part, facts, folder) for name, part in value.items()}
        case list() | tuple():
            return [filled(part, facts, folder) for part in value]
        case _:
            return value


def _replacement(kind: str | None, name: str, facts: Mapping[str, str], folder: Path) -> str:
    if kind == "file":
        try:
            return (folder / name).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"the scenario names {name}: {error}") from error
    if name.lower() not in facts:
        raise ConfigurationError(f"the scenario names the fact {name}, which the first user message does not have")
    return facts[name.lower()]


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)

"""A recipe's agents.toml: who the agents are, what they read first, how far they may go.

A table a stage: `[B]` with `role` and `read` (files of the recipe's folder), `model` (a name of
config/models.toml) and the limits of one visit. Boxes read it as well, so the standard library has to do.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.codec import CodecError, decode
from farm.errors import ConfigurationError
from farm.pipeline.stage import Stage

FILE = "agents.toml"
#: Templates of what an agent is told: who it is, where it begins, what was wrong with its reply.
SYSTEM, START, REPAIR = "prompts/system.md.j2", "prompts/start.md.j2", "prompts/repair.md.j2"
#: What it is told when a reply was cut, and when its limits are near.
CUT, LAST = "prompts/cut.md.j2", "prompts/last.md.j2"


@dataclass(frozen=True, kw_only=True)
class AgentRole:
    """The agent of one stage."""

    role: str  #: file that says what it has to do, in the recipe's folder
    read: tuple[str, ...] = ()  #: files to read before it begins, in the recipe's folder
    model: str  #: name in config/models.toml
    effort: str | None = None  #: how deep it thinks, where the model takes a word for it; None: as usual
    calls: int  #: most model calls of a visit
    minutes: float  #: wall clock of a visit
    tokens: int  #: most tokens of a visit, read and written


def read_agents(text: str) -> Mapping[Stage, AgentRole]:
    """The agents by stage. Raises ConfigurationError."""
    try:
        return decode(dict[Stage, AgentRole], tomllib.loads(text), FILE)
    except (tomllib.TOMLDecodeError, CodecError) as error:
        raise ConfigurationError(f"{FILE}: {error}") from error


def problems(recipe: Path) -> Iterator[str]:
    """Every mistake of the agents of a recipe's folder; a recipe without the file has none."""
    if not (recipe / FILE).is_file():
        return
    try:
        agents = read_agents((recipe / FILE).read_text(encoding="utf-8"))
    except (ConfigurationError, OSError, UnicodeDecodeError) as error:
        yield str(error)
        return
    for stage, agent in agents.items():
        for name in ("calls", "minutes", "tokens"):
            if getattr(agent, name) <= 0:
                yield f"{FILE}: {stage.value}.{name} is not positive"
        for file in (agent.role, *agent.read):
            if not (recipe / file).is_file():
                yield f"{FILE}: {stage.value}: there is no file {file}"
    for file in (SYSTEM, START, REPAIR, CUT, LAST):
        if not (recipe / file).is_file():
            yield f"{file}: agents need it, and it is not there"

"""Does a container engine answer, and if not, what is there to do: the question of `farm doctor`."""

from collections.abc import Mapping
from dataclasses import dataclass

from containers.engine.docker_engine import DEFAULT_HOST, DockerEngine
from farm.errors import EngineUnavailable


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What was found."""

    answers: bool
    facts: dict[str, str]  #: version, api, cgroup, storage; empty when it does not answer
    problem: str | None  #: None when it answers
    next_step: str | None  #: None when it answers


def probe(environment: Mapping[str, str], *, default_host: str = DEFAULT_HOST) -> Probe:
    """Ask the engine that the environment names."""
    engine = DockerEngine(environment=environment, default_host=default_host)
    try:
        facts = engine.facts()
    except EngineUnavailable as error:
        problem, _, advice = str(error).rpartition("; ")
        return Probe(answers=False, facts={}, problem=problem, next_step=advice)
    finally:
        engine.close()
    return Probe(answers=True, facts=facts, problem=None, next_step=None)

"""Does a container engine answer, and if not, what is there to do: the question of `farm doctor`."""

from collections.abc import Mapping
from dataclasses import dataclass

from containers.engine.docker_engine import DockerEngine
from farm.errors import EngineUnavailable


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What was found."""

    answers: bool
    facts: dict[str, str]  #: version, api, cgroup, storage; empty when it does not answer
    problem: str | None  #: None when it answers
    next_step: str | None  #: None when it answers


def probe(environment: Mapping[str, str]) -> Probe:
    """Ask the engine that the environment names."""
    engine = DockerEngine(environment=environment)
    try:
        facts = engine.facts()
    except EngineUnavailable as error:
        return Probe(answers=False, facts={}, problem=str(error), next_step=advice(str(error)))
    finally:
        engine.close()
    return Probe(answers=True, facts=facts, problem=None, next_step=None)


def advice(problem: str) -> str:
    """What to do about an engine that says this."""
    if "Permission denied" in problem:
        return "be root, or join the group of the socket: sudo usermod -aG docker $USER, then log in again"
    if "No such file or directory" in problem:
        return "install Docker (apt install docker.io) or start it (systemctl start docker)"
    if "Connection refused" in problem:
        return "start Docker (systemctl start docker) or correct DOCKER_HOST"
    return "see the daemon's log (journalctl -u docker)"

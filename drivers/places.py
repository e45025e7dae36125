"""Where an embedded farm keeps its things."""

from dataclasses import dataclass
from pathlib import Path

from farm.errors import ConfigurationError
from workers.sockets import socket_path


@dataclass(frozen=True, kw_only=True)
class Places:
    """The files of one embedded farm."""

    state: Path  #: the state folder
    socket: Path  #: where its Redis listens

    @property
    def redis_data(self) -> Path:
        """Redis' own folder."""
        return self.state / "redis"

    @property
    def redis_pid(self) -> Path:
        """Who the Redis server is."""
        return self.state / "run" / "redis.json"

    @property
    def service_pid(self) -> Path:
        """Who the worker's service is."""
        return self.state / "run" / "service.json"

    @property
    def settings(self) -> Path:
        """The settings that the service was started with."""
        return self.state / "run" / "settings.json"

    @property
    def ready(self) -> Path:
        """Exists when the worker takes messages."""
        return self.state / "run" / "settings.ready"

    @property
    def used(self) -> Path:
        """Touched whenever somebody needs the farm."""
        return self.state / "run" / "used"

    @property
    def lock(self) -> Path:
        """Held while something is started or stopped."""
        return self.state / "run" / "lock"

    def log(self, name: str) -> Path:
        """A log file."""
        return self.state / "log" / f"{name}.log"

    @property
    def broker_url(self) -> str:
        """URL of its Redis."""
        return f"redis+socket://{self.socket}"


def places(state: Path) -> Places:
    """The places of the farm in a state folder; its folders are made. Raises ConfigurationError."""
    try:
        for name in ("run", "log", "redis", "artifacts"):
            (state / name).mkdir(parents=True, exist_ok=True)
        (state / "run").chmod(0o700)
    except OSError as error:
        raise ConfigurationError(
            f"the state folder {state} cannot be used: {error}; set TILEFARM_STATE"
        ) from error
    return Places(state=state, socket=socket_path(state, "redis.sock"))

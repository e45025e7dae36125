"""Where an embedded farm keeps its things, and how its paths fit into a socket's name."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from farm.errors import ConfigurationError
from farm.settings import runtime_home

#: Longest path that a Unix socket may have on Linux, bytes.
SOCKET_PATH_BYTES = 107


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
    socket = state / "run" / "redis.sock"
    if len(os.fsencode(socket)) > SOCKET_PATH_BYTES:
        socket = _short_folder(state) / "redis.sock"
    return Places(state=state, socket=socket)


def _short_folder(state: Path) -> Path:
    """A private folder with a short path, the same for the same state folder."""
    digest = hashlib.sha256(os.fsencode(state.resolve())).hexdigest()[:12]
    runtime = runtime_home()
    candidates = [] if runtime is None else [runtime / f"tilefarm-{digest}"]
    candidates += [Path("/tmp") / f"tilefarm-{os.getuid()}-{digest}"]
    for folder in candidates:
        if len(os.fsencode(folder / "redis.sock")) <= SOCKET_PATH_BYTES and _private(folder):
            return folder
    raise ConfigurationError(
        f"the state folder's path is too long for a socket and {candidates[-1]} is not ours alone; "
        "set TILEFARM_STATE to a shorter path"
    )


def _private(folder: Path) -> bool:
    # Anybody may make names in /tmp: only a folder of ours that nobody else can enter is used.
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700

"""Where the gateway of a state folder lies on its host. Whoever starts boxes mounts `folder`."""

from dataclasses import dataclass
from pathlib import Path

from workers.sockets import socket_path

#: Name of the socket in its folder, on the host and in boxes.
SOCKET = "gateway.sock"


@dataclass(frozen=True, kw_only=True)
class GatewayPlace:
    """The files of one gateway."""

    state: Path  #: the state folder
    folder: Path  #: holds the socket and nothing else; mounted into boxes

    @property
    def socket(self) -> Path:
        """Where the gateway listens."""
        return self.folder / SOCKET

    @property
    def process(self) -> Path:
        """Who the gateway is."""
        return process_file(self.state)

    @property
    def settings(self) -> Path:
        """The settings that it was started with."""
        return settings_file(self.state)

    @property
    def probe_secret(self) -> Path:
        """What lets this user, and no box, ask for a call of no job."""
        return self.state / "run" / "gateway-probe"

    @property
    def log(self) -> Path:
        """What the gateway says."""
        return self.state / "log" / "gateway.log"

    def transcript(self, job: str, attempt: int) -> Path:
        """What was said in an attempt of a job, one call a line."""
        return transcript_path(self.state, job, attempt)


def process_file(state: Path) -> Path:
    """See GatewayPlace.process; makes nothing."""
    return state / "run" / "gateway.json"


def settings_file(state: Path) -> Path:
    """See GatewayPlace.settings; makes nothing."""
    return state / "run" / "gateway-settings.json"


def transcript_path(state: Path, job: str, attempt: int) -> Path:
    """See GatewayPlace.transcript; makes nothing."""
    return state / "transcripts" / job / f"{attempt}.jsonl"


def gateway_place(state: Path) -> GatewayPlace:
    """The place of a state folder's gateway; its folder is made. Raises ConfigurationError."""
    socket = socket_path(state, f"gateway/{SOCKET}")
    if socket.is_relative_to(state):
        (state / "run").chmod(0o700)
    # Boxes run as another user; whoever reaches the socket needs a job's token all the same.
    socket.parent.chmod(0o755)
    return GatewayPlace(state=state, folder=socket.parent)

"""Short questions of this user to the gateway, over its socket."""

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any

from farm.errors import FarmError
from workers.gateway.place import GatewayPlace

#: Longest that it may take to say how it is, seconds.
HEALTH_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Health:
    """How a gateway is."""

    broker: bool  #: its rate bucket can be reached
    active: int = 0  #: calls under way
    limit: int = 0  #: most calls at once now
    failing_s: float = 0.0  #: how long the API has failed without a break; 0: it works
    pause_s: float = 0.0  #: nobody asks for so long
    rest_s: float = 0.0  #: nobody asks for so long, and jobs are parked

    @property
    def answers(self) -> bool:
        """Whether a question would be asked now: what parked jobs wait for."""
        return self.broker and self.rest_s == 0.0


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What came of one tiny call."""

    works: bool
    why: str  #: it does not
    model: str
    seconds: float
    micro_usd: int


def health(place: GatewayPlace) -> Health | None:
    """How the gateway is; None: it does not answer."""
    try:
        said = _ask(place, "GET", "/health", {}, HEALTH_S)
    except (OSError, ValueError, http.client.HTTPException):
        return None
    return Health(**{name: said[name] for name in Health.__dataclass_fields__ if name in said})


def probe(place: GatewayPlace, limit_s: float) -> Probed:
    """One tiny call through it. Raises FarmError when the gateway does not answer."""
    try:
        secret = place.probe_secret.read_text(encoding="utf-8")
        said = _ask(place, "POST", "/probe", {"x-farm-probe": secret}, limit_s)
        return Probed(**said)
    except (OSError, ValueError, TypeError, http.client.HTTPException) as error:
        raise FarmError(f"the gateway does not answer: {error}; see {place.log}") from error


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("gateway", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _ask(place: GatewayPlace, method: str, path: str, headers: dict[str, str], limit_s: float) -> dict[str, Any]:
    connection = _Connection(str(place.socket), limit_s)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise ValueError(f"status {answer.status}")
    said: dict[str, Any] = json.loads(body)
    return said

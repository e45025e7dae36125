"""The rate bucket that all gateways of a farm share, in Redis: `bucket.lua` decides, this asks it.

A call holds a place from `take` to `done` and says meanwhile that it lives (`renew`), so that a gateway that dies
gives its places back. A bucket that is lost with Redis is made anew, nearly empty and with one call at once.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farm.settings import Gateway
from workers.gateway.outcome import Strain
from workers.redis_link import RedisScript

#: A call whose gateway has not said for so long that it lives gives its place back, seconds.
LEASE_S = 15.0
_KEYS = ("tilefarm:gateway:bucket", "tilefarm:gateway:calls")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A call that may be made now."""

    id: str
    at: float  #: Redis' time
    input: float  #: tokens that were taken for its prompt
    output: float  #: tokens that were taken for its answer


@dataclass(frozen=True, kw_only=True)
class Used:
    """What a call used of the rates, tokens."""

    input: int  #: without what was read from the cache
    output: int


@dataclass(frozen=True, kw_only=True)
class Busy:
    """No call may be made now."""

    why: str  #: `calls`, `requests`, `input`, `output`: too much; `pause`, `rest`: the API said no
    wait_s: float  #: so long at least
    failing_s: float  #: how long the API has failed without a break; 0: it works


@dataclass(frozen=True, kw_only=True)
class State:
    """How the bucket stands."""

    active: int  #: calls under way, of all gateways
    limit: int  #: most calls at once now
    failing_s: float  #: how long the API has failed without a break; 0: it works
    pause_s: float  #: nobody asks for so long
    rest_s: float  #: nobody asks for so long, and jobs are parked


class RateBucket:
    """Every method raises BrokerUnavailable when Redis does not answer."""

    def __init__(self, url: str, settings: Gateway) -> None:
        self._script = RedisScript(url, Path(__file__).with_name("bucket.lua").read_text(encoding="utf-8"))
        self._rates: dict[str, Any] = {
            "requests": settings.requests_per_minute,
            "input": settings.input_tokens_per_minute,
            "output": settings.output_tokens_per_minute,
            "at_once": settings.at_once,
            "lease_s": LEASE_S,
            "backoff_s": settings.backoff_s,
            "backoff_most_s": settings.backoff_most_s,
        }

    def take(self, call: str, *, input_tokens: int, max_tokens: int) -> Taken | Busy:
        """A place for a call with about so many tokens that no cache has, or how long to wait."""
        said = self._ask("take", id=call, asked_input=input_tokens, most_output=max_tokens)
        if said["why"] == "go":
            return Taken(id=call, at=said["at"], input=said["input"], output=said["output"])
        return Busy(why=said["why"], wait_s=said["wait"], failing_s=said["failing_s"])

    def done(self, taken: Taken, strain: Strain, used: Used, *, retry_after_s: float | None = None) -> State:
        """A call has ended."""
        return self._done(taken, strain, used, retry_after_s, unasked=False)

    def give_back(self, taken: Taken) -> None:
        """A call was not made after all."""
        self._done(taken, Strain.NONE, Used(input=0, output=0), None, unasked=True)

    def renew(self, calls: Iterable[str]) -> None:
        """These calls live."""
        self._ask("renew", ids=list(calls))

    def rest(self, rest_s: float) -> None:
        """Nobody asks for so long."""
        self._ask("rest", rest_s=rest_s)

    def look(self) -> State:
        """How it stands."""
        return _state(self._ask("look"))

    def close(self) -> None:
        """Close the connections."""
        self._script.close()

    def _done(self, taken: Taken, strain: Strain, used: Used, after_s: float | None, *, unasked: bool) -> State:
        said = self._ask(
            "done",
            id=taken.id,
            at=taken.at,
            strain=strain.value,
            taken_input=taken.input,
            taken_output=taken.output,
            used_input=used.input,
            used_output=used.output,
            retry_after_s=after_s,
            unasked=unasked,
        )
        return _state(said)

    def _ask(self, verb: str, **parameters: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._script.run(_KEYS, verb, json.dumps(self._rates | parameters)))
        return answer


def _state(said: dict[str, Any]) -> State:
    return State(
        active=said["active"],
        limit=said["limit"],
        failing_s=said["failing_s"],
        pause_s=said["pause_s"],
        rest_s=said["rest_s"],
    )

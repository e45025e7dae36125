"""The one module that opens Redis beside Celery: is it there, is it safe, what lies in the queue; scripts."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from farm.errors import BrokerUnavailable, ConfigurationError

#: How long Redis may take to answer.
TIMEOUT_S = 5.0
#: What to do about a Redis that the settings name.
GIVEN_ADVICE = "start it, or correct broker.url; without broker.url the farm starts a Redis of its own"


class RedisLink:
    """Short questions to one Redis. Every method raises BrokerUnavailable when it does not answer."""

    def __init__(self, url: str, *, embedded: bool = False) -> None:
        """`embedded`: it is the farm's own, which the farm starts itself."""
        self._url = url
        self._advice = "`farm up` starts the embedded one" if embedded else GIVEN_ADVICE

    def ping(self) -> None:
        """Nothing happens when Redis answers."""
        with self._open() as client:
            client.ping()

    def problems(self) -> tuple[str, ...]:
        """What is wrong with its settings for a queue, each with what to do; empty: nothing."""
        with self._open() as client:
            info = client.info()
        found = []
        if not info.get("aof_enabled"):
            found.append("Redis has no append-only file: set `appendonly yes`")
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            found.append(f"Redis drops keys when full ({policy}): set `maxmemory-policy noeviction`")
        if info.get("role") != "master":
            found.append("Redis is a replica: give the address of its master")
        return tuple(found)

    def waiting_ids(self, queue: str) -> tuple[str, ...]:
        """Task ids of the messages that no worker has taken yet, next one first."""
        with self._open() as client:
            messages = client.lrange(queue, 0, -1)
        # Celery's Redis transport pushes left and pops right.
        return tuple(json.loads(message)["headers"]["id"] for message in reversed(messages))

    def key_count(self) -> int:
        """How many keys it holds."""
        with self._open() as client:
            return int(client.dbsize())

    def shut_down(self) -> None:
        """Write everything to disk and stop the server."""
        with self._open() as client:
            client.shutdown()

    @contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            client = _client(self._url)
        except ValueError as error:
            raise ConfigurationError(f"broker.url: {error}") from error
        try:
            yield client
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise BrokerUnavailable(
                f"Redis does not answer at {_shown(self._url)}: {_reason(error)}; {self._advice}"
            ) from error
        finally:
            client.close()


class RedisScript:
    """One Lua script, run by name of its digest over connections that stay open. Safe for threads.

    Raises BrokerUnavailable when Redis does not answer.
    """

    def __init__(self, url: str, script: str) -> None:
        self._url = url
        try:
            client: Any = _client(url)
        except ValueError as error:
            raise ConfigurationError(f"broker.url: {error}") from error
        self._client = client
        self._script = client.register_script(script)

    def run(self, keys: Sequence[str], *arguments: str) -> Any:
        """What the script returns; a Redis that lost the script is given it again."""
        try:
            return self._script(keys=list(keys), args=list(arguments))
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise BrokerUnavailable(f"Redis does not answer at {_shown(self._url)}: {_reason(error)}") from error
        except redis.ResponseError as error:
            raise BrokerUnavailable(f"Redis at {_shown(self._url)} refuses: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _client(url: str) -> Any:
    # The library's own types and its stub package disagree; what comes back is Any.
    return redis.Redis.from_url(
        url.removeprefix("redis+").replace("socket://", "unix://", 1),
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
    )


def _shown(url: str) -> str:
    """A URL for messages, without the password that it may hold."""
    return re.sub(r"//[^/@\s]*@", "//", url)


def _reason(error: BaseException) -> str:
    """The system's own words below the library's, or the library's."""
    below = error.__cause__ or error.__context__
    return below.strerror if isinstance(below, OSError) and below.strerror else str(error).rstrip(".")

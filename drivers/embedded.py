"""The farm of one machine: a Redis, a worker and, where agents are to work, a gateway, of one state folder.

`up` starts what is missing and finds what runs; both live beyond the command. They stop by `down`,
or by themselves when no job has moved for a while. `python -m drivers.embedded SETTINGS.json` is
the service that `up` starts.
"""

import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from drivers import redis_server
from drivers.places import Places, places
from farm import logs
from farm.errors import FarmError
from farm.ledger import Ledger
from farm.logs import Action, context
from farm.settings import Settings, drop_keys, dump, inherited, restore
from workers import processes
from workers.filelock import FileLock
from workers.gateway import host
from workers.gateway.place import settings_file
from workers.gateway.usable import key_problem
from workers.redis_link import RedisLink
from workers.service import Service

_log = logging.getLogger(__name__)

#: How long a worker may take to be ready for messages.
READY_LIMIT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Status:
    """What of an embedded farm runs now."""

    state: Path  #: the state folder
    redis: int | None  #: pid of its Redis, None: none runs, or it is not ours
    redis_answers: bool
    service: int | None  #: pid of the worker's service, None: none runs
    ready: bool  #: the worker takes messages
    gateway: int | None  #: pid of the gateway, None: none runs
    settings: Settings  #: as the service has or would have them, `broker.url` filled in

    @property
    def running(self) -> bool:
        """Whether jobs are worked on."""
        return self.redis_answers and self.service is not None


def connected(settings: Settings) -> Settings:
    """The settings with the URL of the embedded Redis filled in where none is given."""
    if settings.broker.url is not None:
        return settings
    url = places(settings.state).broker_url
    return settings.model_copy(update={"broker": settings.broker.model_copy(update={"url": url})})


def up(settings: Settings, *, wait_ready: bool = False, gateway: Mapping[str, str] | None = None) -> Status:
    """Start what is missing; a second call finds what runs. Submit jobs before, so that it stays up.

    A given `broker.url` is used instead of a Redis of its own. With an environment for it, a gateway is started
    too. Raises BrokerUnavailable, or ConfigurationError when the state folder cannot be used or there is no key.
    """
    where = places(settings.state)
    full = connected(settings)
    with FileLock(where.lock).held():
        where.used.touch()
        _ensure_redis(settings, where)
        if processes.recorded(where.service_pid) is None:
            where.ready.unlink(missing_ok=True)
            where.settings.write_text(dump(full), encoding="utf-8")
            command = processes.python_module("drivers.embedded", str(where.settings))
            log = where.log("worker")
            pid = processes.start_detached(command, log=log, cwd=where.state, env=inherited())
            processes.record(where.service_pid, pid)
        if gateway is not None:
            host.ensure(full, gateway)
    if wait_ready:
        _await_ready(where)
    return status(settings)


def down(settings: Settings) -> bool:
    """Stop worker, gateway and Redis; jobs and boxes stay as they are. Whether anything ran."""
    where = places(settings.state)
    with FileLock(where.lock).held():
        service = processes.recorded(where.service_pid)
        if service is not None:
            processes.stop(service, grace_s=settings.worker.stop_grace_s + 5.0)
            where.service_pid.unlink(missing_ok=True)
        relayed = host.stop(settings)
        stopped = redis_server.stop(where, grace_s=10.0)
        where.ready.unlink(missing_ok=True)
    return stopped or relayed or service is not None


def status(settings: Settings) -> Status:
    """What runs now; starts nothing."""
    where = places(settings.state)
    full = connected(settings)
    redis = processes.recorded(where.redis_pid)
    service = processes.recorded(where.service_pid)
    return Status(
        state=where.state,
        redis=redis.pid if redis else None,
        redis_answers=redis_server.answers(RedisLink(full.broker.url or "", embedded=True)),
        service=service.pid if service else None,
        ready=service is not None and where.ready.exists(),
        gateway=host.pid(settings),
        settings=full,
    )


class _Chores:
    """What the service of an embedded farm does beside working: keep Redis and gateway alive, notice idleness."""

    def __init__(self, settings: Settings, where: Places) -> None:
        self._settings = settings
        self._where = where
        self._ledger = Ledger(settings.ledger_url)
        self._lock = FileLock(where.lock)

    def keep_redis(self) -> bool:
        """Start Redis again when it has died."""
        if not _own_redis(self._settings, self._where) or redis_server.answers(self._link()):
            return False
        # Whoever has the lock starts or stops it already; waiting here would make us deaf to `down`.
        if self._lock.take():
            try:
                if redis_server.ensure(self._where, self._settings.broker.redis_server):
                    _log.error("the embedded Redis had died", extra=context(Action.BROKER_RESTARTED))
            finally:
                self._lock.release()
        return False

    def keep_gateway(self) -> bool:
        """Start a gateway again that was killed with its keeper, where its key is not gone with it."""
        wanted = settings_file(self._settings.state).exists()
        if (
            not wanted
            or host.pid(self._settings) is not None
            or key_problem(self._settings.gateway, {}) is not None
        ):
            return False
        if self._lock.take():
            try:
                if host.ensure(self._settings, inherited(), wait=False):
                    _log.error("the gateway had died", extra=context(Action.GATEWAY_RESTARTED))
            finally:
                self._lock.release()
        return False

    def stop_when_idle(self) -> bool:
        """Whether nothing has moved for the idle time; if so, the lock is kept until `finish`."""
        if not self._idle() or not self._lock.take():
            return False
        if self._idle():
            return True
        self._lock.release()
        return False

    def finish(self) -> None:
        """After an idle stop: end gateway and Redis too and let go."""
        if self._lock.taken:
            host.stop(self._settings)
            redis_server.stop(self._where, grace_s=10.0)
            self._where.service_pid.unlink(missing_ok=True)
            self._where.ready.unlink(missing_ok=True)
            self._lock.release()

    def _idle(self) -> bool:
        if self._ledger.moving():
            self._where.used.touch()
            return False
        unused_s = time.time() - self._where.used.stat().st_mtime
        return unused_s > 60 * self._settings.embedded.idle_minutes

    def _link(self) -> RedisLink:
        return RedisLink(self._settings.broker.url or "")


def _own_redis(settings: Settings, where: Places) -> bool:
    return settings.broker.url in (None, where.broker_url)


def _ensure_redis(settings: Settings, where: Places) -> None:
    if _own_redis(settings, where):
        redis_server.ensure(where, settings.broker.redis_server)
    else:
        RedisLink(settings.broker.url or "").ping()


def _await_ready(where: Places) -> None:
    end = time.monotonic() + READY_LIMIT_S
    while not where.ready.exists():
        if processes.recorded(where.service_pid) is None or time.monotonic() > end:
            raise FarmError(f"the worker did not become ready; see {where.log('worker')}")
        where.used.touch()
        time.sleep(0.02)


def main(argv: list[str]) -> int:
    """Entry point of the service: the path of dumped settings."""
    path = Path(argv[0])
    logs.configure()
    drop_keys()
    settings = restore(path.read_text(encoding="utf-8"))
    where = places(settings.state)
    chores = _Chores(settings, where)
    try:
        Service(settings, path, chores=(chores.keep_redis, chores.keep_gateway, chores.stop_when_idle)).run()
    finally:
        chores.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

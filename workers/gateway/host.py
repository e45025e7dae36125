"""Starts, finds and stops the gateway of a state folder. The caller holds the farm's lock."""

import time
from collections.abc import Mapping

from farm.errors import ConfigurationError, FarmError
from farm.settings import Settings, dump
from workers import processes
from workers.gateway.client import health
from workers.gateway.place import GatewayPlace, gateway_place, process_file, settings_file
from workers.gateway.usable import key_problem, models_of

#: How long a gateway may take to listen, seconds.
START_LIMIT_S = 30.0


def ensure(settings: Settings, environ: Mapping[str, str], *, wait: bool = True) -> bool:
    """Make a gateway run; whether it had to be started. `environ` is its environment, with the key.

    `broker.url` must be filled in. Raises ConfigurationError where no key is known, FarmError with the end of its
    log when it does not come up.
    """
    place = gateway_place(settings.state)
    if processes.recorded(place.process) is not None:
        return False
    problem = key_problem(settings.gateway, environ)
    if problem is not None:
        raise ConfigurationError(problem)
    models_of(settings)  # a mistake in prices is said here, not in a log
    place.settings.write_text(dump(settings), encoding="utf-8")
    command = processes.python_module("workers.gateway.keeper", str(place.settings))
    pid = processes.start_detached(command, log=place.log, cwd=settings.state, env=environ)
    processes.record(place.process, pid)
    if wait:
        _await(place)
    return True


def stop(settings: Settings) -> bool:
    """Stop it; whether one ran. Calls under way may finish within the workers' grace; their answers are kept."""
    running = processes.recorded(process_file(settings.state))
    if running is None and not settings_file(settings.state).exists():
        return False
    place = gateway_place(settings.state)
    if running is not None:
        processes.stop(running, grace_s=settings.worker.stop_grace_s + 5.0)
    for left in (place.process, place.settings, place.socket, place.probe_secret):
        left.unlink(missing_ok=True)
    return running is not None


def pid(settings: Settings) -> int | None:
    """Who it is; None: none runs."""
    running = processes.recorded(process_file(settings.state))
    return None if running is None else running.pid


def _await(place: GatewayPlace) -> None:
    end = time.monotonic() + START_LIMIT_S
    while health(place) is None:
        if processes.recorded(place.process) is None or time.monotonic() > end:
            tail = place.log.read_text(encoding="utf-8", errors="replace")[-500:].strip()
            raise FarmError(f"the gateway did not start; see {place.log}: {tail}")
        time.sleep(0.05)

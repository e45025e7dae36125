"""What must be right for a farm to work, as findings for `farm doctor`."""

import os
import shutil
import tempfile
from dataclasses import dataclass

from farm.errors import FarmError
from farm.ledger import Ledger
from farm.settings import Settings
from workers.redis_link import RedisLink


@dataclass(frozen=True, kw_only=True)
class HealthFinding:
    """One thing that was looked at."""

    name: str  #: what was looked at
    ok: bool
    message: str  #: what was found and, if it is not right, what to do


def broker_finding(settings: Settings) -> HealthFinding:
    """Whether Redis answers and keeps what it is given; the settings must name its URL."""
    try:
        problems = RedisLink(settings.broker.url or "").problems()
    except FarmError as error:
        return HealthFinding(name="broker", ok=False, message=str(error))
    message = "; ".join(problems) or "Redis keeps its queue"
    return HealthFinding(name="broker", ok=not problems, message=message)


def ledger_finding(settings: Settings) -> HealthFinding:
    """Whether the ledger can be opened and written."""
    ledger = Ledger(settings.ledger_url)
    try:
        fence = ledger.claim("doctor", f"{os.getpid()}", ttl_s=1.0)
        if fence is not None:
            ledger.release_claim("doctor", fence)
    except FarmError as error:
        return HealthFinding(name="ledger", ok=False, message=str(error))
    finally:
        ledger.close()
    return HealthFinding(name="ledger", ok=True, message=f"{settings.ledger_url} can be written")


def space_finding(settings: Settings) -> HealthFinding:
    """Whether the state folder has room for a job, and is writable."""
    try:
        settings.state.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.state):
            free = shutil.disk_usage(settings.state).free
    except OSError as error:
        message = f"the state folder {settings.state} cannot be written: {error}; set TILEFARM_STATE"
        return HealthFinding(name="space", ok=False, message=message)
    least = settings.limits.min_free_bytes
    found = f"{free >> 20} MiB are free in {settings.state}"
    if free < least:
        message = f"{found}, a job needs {least >> 20} MiB; free some space"
        return HealthFinding(name="space", ok=False, message=message)
    return HealthFinding(name="space", ok=True, message=found)


def findings(settings: Settings) -> tuple[HealthFinding, ...]:
    """All of them."""
    return (broker_finding(settings), ledger_finding(settings), space_finding(settings))

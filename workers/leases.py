"""Holding a job's lease while a step runs: taken in the ledger, renewed by a heartbeat thread."""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from farm.errors import FarmError, StaleFence
from farm.ledger import Grant, Ledger
from farm.logs import Action, context

_log = logging.getLogger(__name__)


def host_prefix() -> str:
    """What the names of all lease owners on this machine begin with."""
    return f"{socket.gethostname()}:"


def owner_name() -> str:
    """A name for this process as an owner of leases, never used twice."""
    return f"{host_prefix()}{os.getpid()}:{secrets.token_hex(4)}"


class HeldLease:
    """A granted lease; see `workers.spine.Hold`."""

    def __init__(self, ledger: Ledger, grant: Grant, *, ttl_s: float) -> None:
        self._ledger = ledger
        self._ttl_s = ttl_s
        self.grant = grant
        self._stop = threading.Event()

    @property
    def fence(self) -> int:
        """The lease's fence."""
        return self.grant.job.fence

    def check(self) -> None:
        """Renew the lease. Raises StaleFence when another worker has the job."""
        self._ledger.renew(self.grant.job.id, self.fence, ttl_s=self._ttl_s)

    def beat(self) -> None:
        """Renew the lease each third of its time until stopped or lost."""
        while not self._stop.wait(self._ttl_s / 3):
            try:
                self.check()
            except StaleFence:
                return
            except FarmError as error:
                _log.warning("%s", error, extra=context(Action.HEARTBEAT_FAILED, self.grant.job))

    def stop(self) -> None:
        """End the heartbeat."""
        self._stop.set()


@contextmanager
def leased(ledger: Ledger, job_id: str, owner: str, *, ttl_s: float) -> Iterator[HeldLease | None]:
    """The job's lease, renewed until the block ends; None when it cannot be had now.

    The lease is given back by the write that ends the step; a step that writes nothing lets it run out.
    """
    grant = ledger.acquire(job_id, owner, ttl_s=ttl_s)
    if grant is None:
        yield None
        return
    held = HeldLease(ledger, grant, ttl_s=ttl_s)
    thread = threading.Thread(target=held.beat, name=f"heartbeat {job_id}", daemon=True)
    thread.start()
    try:
        yield held
    finally:
        held.stop()
        thread.join()

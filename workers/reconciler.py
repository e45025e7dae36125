"""Compares ledger and queue, and enqueues what should be moving and is not.

So neither a lost message, a lost countdown, a killed worker nor an emptied Redis stops a job.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from farm.job import Job
from farm.ledger import Ledger
from farm.logs import Action, context
from farm.settings import Worker

_log = logging.getLogger(__name__)

#: Name of the claim under which one reconciler works.
CLAIM = "reconciler"
#: Name of the task that looks for orphan boxes, and the first part of its messages' ids.
REAP = "reap"


class Queue(Protocol):
    """Where messages wait for a worker. Every method raises BrokerUnavailable when it is out of reach."""

    def waiting(self) -> tuple[str, ...]:
        """Ids of the messages that no worker has taken, `JOB/...` or `reap/...`, next one first."""

    def enqueue(self, job: Job, after_s: float) -> None:
        """Send the message that advances a job."""

    def enqueue_reap(self) -> None:
        """Send the message that looks for orphan boxes."""


class MemoryQueue:
    """A queue for tests: what was sent stays until `take` empties it."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def waiting(self) -> tuple[str, ...]:
        """Ids of what lies here."""
        return tuple(self.messages)

    def enqueue(self, job: Job, after_s: float) -> None:
        """Keep a message."""
        self.messages.append(f"{job.id}/{len(self.messages)}")

    def enqueue_reap(self) -> None:
        """Keep a message."""
        self.messages.append(f"{REAP}/{len(self.messages)}")

    def take(self) -> tuple[str, ...]:
        """Empty the queue; the first parts of the ids that were in it."""
        taken, self.messages = self.messages, []
        return tuple(job_of(message) for message in taken)


def job_of(message: str) -> str:
    """The job that a message with this id advances."""
    return message.rpartition("/")[0]


class Reconciler:
    """One look at a time; of all workers' reconcilers the one with the claim works."""

    def __init__(
        self, ledger: Ledger, queue: Queue, worker: Worker, *, owner: str, clock: Callable[[], float]
    ) -> None:
        self._ledger = ledger
        self._queue = queue
        self._worker = worker
        self._owner = owner
        self._clock = clock
        self._reap_at = 0.0

    def look(self) -> int:
        """Enqueue what stands still; how many jobs. Raises BrokerUnavailable, LedgerUnavailable."""
        every_s = self._worker.reconcile_s
        claim_s = max(5.0, 3 * every_s)
        if self._ledger.claim(CLAIM, self._owner, ttl_s=min(claim_s, self._worker.lease_s)) is None:
            return 0
        self._reap()
        due = self._ledger.due(grace_s=every_s / 2, again_s=3 * every_s)
        if not due:
            return 0
        in_queue = {job_of(message) for message in self._queue.waiting()}
        missing = [job for job in due if job.id not in in_queue]
        for job in missing:
            self._queue.enqueue(job, 0.0)
        self._ledger.nudged(job.id for job in missing)
        if missing:
            _log.info("enqueued %d jobs that stood still", len(missing), extra=context(Action.RECONCILED))
        return len(missing)

    def _reap(self) -> None:
        now = self._clock()
        if now < self._reap_at:
            return
        if not any(job_of(message) == REAP for message in self._queue.waiting()):
            self._queue.enqueue_reap()
        self._reap_at = now + self._worker.reap_s

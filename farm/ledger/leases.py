"""Who may act on a job now: leases, fences, what is due, and the wish to cancel."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from farm.errors import StaleFence
from farm.events import CancelRequested, LeaseLost, Moved
from farm.job import FINAL, Job, JobState
from farm.ledger import schema
from farm.ledger.records import Grant
from farm.ledger.rows import Part, job_row, log_events, to_job

#: A message may come this much before its time, because timers are not exact.
EARLY_S = 0.05
#: States in which nothing runs outside the ledger, so that no worker is needed to cancel.
CANCELLED_AT_ONCE = frozenset({JobState.QUEUED, JobState.AWAITING_GPU})
_FINAL = [state.value for state in FINAL]


class Leases(Part):
    """Grants, renews and ends leases. Time is the caller's clock; fences make its errors harmless."""

    def acquire(self, job_id: str, owner: str, *, ttl_s: float) -> Grant | None:
        """The job's lease with a new fence, or None: job final, lease live, or nothing due yet."""
        now = self._clock()
        table = schema.jobs
        with self._database.write(durable=False) as connection:
            row = job_row(connection, job_id)
            due = row.cancel_requested or row.poll_at <= now + EARLY_S
            if row.state in _FINAL or row.lease_until > now or not due:
                return None
            lost = row.lease_owner is not None
            losses = row.losses + int(lost)
            taken = connection.execute(
                update(table)
                .where(table.c.id == job_id, table.c.fence == row.fence, table.c.state == row.state)
                .values(fence=row.fence + 1, lease_owner=owner, lease_until=now + ttl_s, losses=losses)
            )
            if taken.rowcount != 1:
                return None
            if lost:
                event = LeaseLost(owner=row.lease_owner, fence=row.fence)
                log_events(connection, at=now, run=row.run, job=row.id, attempt=row.attempt, events=[event])
            return Grant(job=to_job(row).evolve(fence=row.fence + 1), losses=losses)

    def renew(self, job_id: str, fence: int, *, ttl_s: float) -> None:
        """Keep a lease for another `ttl_s`. Raises StaleFence when it is given back or went to another."""
        table = schema.jobs
        with self._database.write(durable=False) as connection:
            renewed = connection.execute(
                update(table)
                .where(table.c.id == job_id, table.c.fence == fence, table.c.lease_owner.is_not(None))
                .values(lease_until=self._clock() + ttl_s)
            )
        if renewed.rowcount != 1:
            raise StaleFence

    def live_leases(self, owner_prefix: str) -> int:
        """How many jobs are leased now by owners whose name begins so."""
        table = schema.jobs
        query = (
            select(func.count())
            .select_from(table)
            .where(
                table.c.lease_until > self._clock(),
                table.c.lease_owner.startswith(owner_prefix, autoescape=True),
            )
        )
        with self._database.read() as connection:
            return connection.scalar(query) or 0

    def due(self, *, grace_s: float, again_s: float, limit: int = 500) -> tuple[Job, ...]:
        """Jobs due for `grace_s`, without a live lease, not nudged within `again_s`; longest due first."""
        now = self._clock()
        table = schema.jobs
        query = (
            select(table)
            .where(
                table.c.state.not_in(_FINAL),
                table.c.lease_until <= now,
                table.c.poll_at <= now - grace_s,
                table.c.nudged_at <= now - again_s,
            )
            .order_by(table.c.poll_at, table.c.id)
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(to_job(row) for row in connection.execute(query))

    def nudged(self, job_ids: Iterable[str]) -> None:
        """Remember that these jobs were enqueued just now."""
        table = schema.jobs
        ids = list(job_ids)
        if not ids:
            return
        with self._database.write(durable=False) as connection:
            connection.execute(update(table).where(table.c.id.in_(ids)).values(nudged_at=self._clock()))

    def request_cancel(self, job_id: str) -> Job:
        """Store the wish to cancel; a job of which nothing runs is cancelled by this. Raises UnknownJob."""
        now = self._clock()
        table = schema.jobs
        with self._database.write() as connection:
            row = job_row(connection, job_id)
            if row.state in _FINAL:
                return to_job(row)
            if not row.cancel_requested:
                connection.execute(
                    update(table)
                    .where(table.c.id == job_id, table.c.state.not_in(_FINAL))
                    .values(cancel_requested=True, poll_at=now, nudged_at=0.0)
                )
                log_events(
                    connection,
                    at=now,
                    run=row.run,
                    job=row.id,
                    attempt=row.attempt,
                    events=[CancelRequested()],
                )
            if JobState(row.state) in CANCELLED_AT_ONCE and row.lease_until <= now:
                _cancel(connection, row, now)
            return to_job(job_row(connection, job_id))


def _cancel(connection: Connection, row: Row[Any], now: float) -> None:
    # The new fence refuses a stopped holder of the old lease.
    table = schema.jobs
    done = connection.execute(
        update(table)
        .where(table.c.id == row.id, table.c.state == row.state, table.c.fence == row.fence)
        .values(
            state=JobState.CANCELLED.value,
            fence=row.fence + 1,
            lease_owner=None,
            lease_until=0.0,
            summary="cancelled by request",
            updated_at=now,
        )
    )
    if done.rowcount == 1:
        attempts = schema.attempts
        connection.execute(
            update(attempts)
            .where(attempts.c.job == row.id, attempts.c.ended_at.is_(None))
            .values(ended_at=now, summary="cancelled by request")
        )
        moved = Moved(
            source=JobState(row.state),
            to=JobState.CANCELLED,
            fence=row.fence + 1,
            summary="cancelled by request",
        )
        log_events(connection, at=now, run=row.run, job=row.id, attempt=row.attempt, events=[moved])

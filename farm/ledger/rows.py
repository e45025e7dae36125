"""Database rows to the farm's records and back."""

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from farm.codec import decode, encode
from farm.errors import UnknownJob
from farm.events import Event, Logged, once_key
from farm.fault import Fault
from farm.job import Accept, Job, JobState, ParkReason, Run
from farm.ledger import schema
from farm.ledger.database import Database
from farm.pipeline.stage import ExecutorKind

Clock = Callable[[], float]


class Part:
    """What the ledger's parts share: the database and a clock."""

    def __init__(self, url: str, clock: Clock = time.time) -> None:
        self._database = Database(url)
        self._clock = clock

    def close(self) -> None:
        """Give all connections back."""
        self._database.close()


def to_run(row: Row[Any]) -> Run:
    """The run in a row of `runs`."""
    return Run(
        id=row.id,
        recipe=row.recipe,
        repo=row.repo,
        push_to=row.push_to,
        base=row.base,
        accept=Accept(row.accept),
        attempts=row.attempts,
        executors=None if row.executors is None else ExecutorKind(row.executors),
        budget_micro_usd=row.budget_micro_usd,
        created_at=row.created_at,
    )


def to_job(row: Row[Any]) -> Job:
    """The job in a row of `jobs`."""
    return Job(
        id=row.id,
        run=row.run,
        op=row.op,
        state=JobState(row.state),
        attempt=row.attempt,
        transients=row.transients,
        fence=row.fence,
        cancel_requested=bool(row.cancel_requested),
        parked_from=None if row.parked_from is None else JobState(row.parked_from),
        park_reason=None if row.park_reason is None else ParkReason(row.park_reason),
        fault=None if row.fault is None else Fault(row.fault),
        summary=row.summary,
        commit=row.commit_id,
        branch=row.branch,
        updated_at=row.updated_at,
    )


def to_logged(row: Row[Any]) -> Logged:
    """The event in a row of `events`."""
    event: Event = decode(Event, json.loads(row.body))  # type: ignore[arg-type] # a union is no type[T]
    return Logged(seq=row.seq, at=row.at, run=row.run, job=row.job, attempt=row.attempt, event=event)


def job_row(connection: Connection, job_id: str) -> Row[Any]:
    """The row of a job. Raises UnknownJob."""
    row = connection.execute(select(schema.jobs).where(schema.jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise UnknownJob(f"there is no job {job_id!r}; `farm status RUN` lists a run's jobs")
    return row


def log_events(
    connection: Connection, *, at: float, run: str, job: str, attempt: int, events: Iterable[Event]
) -> None:
    """Append events of a job; those with a once-key that is there already are left out."""
    fresh = [(event, once_key(event)) for event in events]
    keys = [key for _, key in fresh if key is not None]
    known: set[str | None] = set()
    if keys:
        table = schema.events
        found = connection.scalars(select(table.c.once).where(table.c.job == job, table.c.once.in_(keys)))
        known = set(found)
    for event, key in fresh:
        if key is not None and key in known:
            continue
        known.add(key)
        connection.execute(
            insert(schema.events).values(
                at=at,
                run=run,
                job=job,
                attempt=attempt,
                kind=event.kind,
                body=json.dumps(encode(event)),
                once=key,
            )
        )

"""Transitions: one UPDATE each, guarded by state and fence."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from farm.errors import IllegalTransition, StaleFence
from farm.events import AttemptEnded, AttemptStarted, Event, Moved, TransientRetry
from farm.fault import Fault
from farm.job import FINAL, TRANSITIONS, Job, JobState
from farm.ledger import schema
from farm.ledger.records import TRACE, Change, Charge
from farm.ledger.rows import Part, job_row, log_events, to_job
from farm.ledger.turns import note_wait


class Moves(Part):
    """Writes what a lease's holder did, and gives the lease back with it."""

    def move(self, job: Job, to: JobState, change: Change) -> Job:
        """Bring a job from `job.state` to another state and release its lease.

        Raises IllegalTransition before anything is written, StaleFence when the job has another
        state or fence by now.
        """
        check_transition(job, to, change)
        now = self._clock()
        with self._database.write() as connection:
            number = _attempt_number(connection, job, to)
            values: dict[str, Any] = {
                "state": to.value,
                "attempt": number,
                "transients": job.transients + int(change.charge is Charge.TRANSIENT),
                "parked_from": job.state.value if to is JobState.PARKED else None,
                "park_reason": change.park_reason.value if change.park_reason else None,
                "fault": change.fault.value if change.fault and to is JobState.FAILED else None,
                "summary": change.summary,
                "commit_id": change.commit,
                "branch": change.branch,
                "updated_at": now,
                **_released(now + change.after_s),
            }
            _write(connection, job, values)
            note_wait(connection, job.id, change.waits, now + change.after_s)
            _keep(connection, job, number, change)
            events: list[Event] = [*change.events]
            if number != job.attempt:
                connection.execute(insert(schema.attempts).values(job=job.id, number=number, started_at=now))
                events.append(AttemptStarted(number=number))
            if change.charge is Charge.ATTEMPT or to in FINAL:
                events += _end_attempt(connection, job, change, now)
            if change.charge is Charge.TRANSIENT:
                events.append(
                    TransientRetry(
                        fault=change.fault or Fault.INFRA,
                        summary=change.summary or "",
                        used=job.transients + 1,
                    )
                )
            events.append(Moved(source=job.state, to=to, fence=job.fence, summary=change.summary))
            log_events(connection, at=now, run=job.run, job=job.id, attempt=number, events=events)
            return to_job(job_row(connection, job.id))

    def stay(self, job: Job, change: Change) -> None:
        """Write what a step found without moving the job, release its lease, be due in `after_s`.

        Raises StaleFence when the job has another state or fence by now.
        """
        now = self._clock()
        values: dict[str, Any] = _released(now + change.after_s)
        if change.summary is not None:
            values["summary"] = change.summary
        with self._database.write(durable=bool(change.artifacts or change.gates)) as connection:
            _write(connection, job, values)
            note_wait(connection, job.id, change.waits, now + change.after_s)
            _keep(connection, job, job.attempt, change)
            log_events(connection, at=now, run=job.run, job=job.id, attempt=job.attempt, events=change.events)

    def supply(self, job: Job, artifacts: Mapping[str, str]) -> bool:
        """Give a job that waits for a GPU what came for it, and let its next step be due now.

        Needs no lease, as the wish to cancel does not: the step decides what follows. False, and nothing is
        written, when the job does not wait for a GPU any more or is in another attempt.
        """
        now, table = self._clock(), schema.jobs
        with self._database.write() as connection:
            done = connection.execute(
                update(table)
                .where(
                    table.c.id == job.id,
                    table.c.state == JobState.AWAITING_GPU.value,
                    table.c.attempt == job.attempt,
                )
                .values(poll_at=now, nudged_at=0.0)
            )
            if done.rowcount == 1:
                _keep(connection, job, job.attempt, Change(artifacts=artifacts))
        return done.rowcount == 1


def check_transition(job: Job, to: JobState, change: Change) -> None:
    """Raises IllegalTransition unless the table has it and its facts are complete."""
    if to not in TRANSITIONS[job.state]:
        raise IllegalTransition(f"{job.id} may not move from {job.state} to {to}")
    if job.state is JobState.PARKED and to not in (job.parked_from, JobState.CANCELLED):
        raise IllegalTransition(f"{job.id} was parked from {job.parked_from} and may not move to {to}")
    if (to is JobState.PARKED) != (change.park_reason is not None):
        raise IllegalTransition(f"{job.id}: a park reason belongs to PARKED and to nothing else")
    if to is JobState.ACCEPTED and change.commit is None:
        raise IllegalTransition(f"{job.id} may not be accepted without a commit")
    if to is JobState.FAILED and change.fault is None:
        raise IllegalTransition(f"{job.id} may not fail without a fault")


def _released(poll_at: float) -> dict[str, Any]:
    return {"lease_owner": None, "lease_until": 0.0, "losses": 0, "poll_at": poll_at, "nudged_at": 0.0}


def _write(connection: Connection, job: Job, values: dict[str, Any]) -> None:
    table = schema.jobs
    written = connection.execute(
        update(table)
        .where(table.c.id == job.id, table.c.state == job.state.value, table.c.fence == job.fence)
        .values(**values)
    )
    if written.rowcount != 1:
        raise StaleFence(f"{job.id}: fence {job.fence} in state {job.state} is not valid any more")


def _attempt_number(connection: Connection, job: Job, to: JobState) -> int:
    if to is not JobState.PREPARING or job.state is not JobState.QUEUED:
        return job.attempt
    table = schema.attempts
    goes_on = connection.scalar(
        select(table.c.number).where(
            table.c.job == job.id, table.c.number == job.attempt, table.c.ended_at.is_(None)
        )
    )
    return job.attempt if goes_on is not None else job.attempt + 1


def _end_attempt(connection: Connection, job: Job, change: Change, now: float) -> list[Event]:
    table = schema.attempts
    trace = change.artifacts.get(TRACE)
    ended = connection.execute(
        update(table)
        .where(table.c.job == job.id, table.c.number == job.attempt, table.c.ended_at.is_(None))
        .values(
            ended_at=now,
            fault=change.fault.value if change.fault else None,
            summary=change.summary,
            trace=trace,
        )
    )
    if ended.rowcount != 1 or change.fault is None:
        return []
    return [AttemptEnded(number=job.attempt, fault=change.fault, summary=change.summary or "", trace=trace)]


def _keep(connection: Connection, job: Job, attempt: int, change: Change) -> None:
    kept = schema.artifacts
    for name, sha256 in change.artifacts.items():
        connection.execute(
            delete(kept).where(kept.c.job == job.id, kept.c.attempt == attempt, kept.c.name == name)
        )
        connection.execute(insert(kept).values(job=job.id, attempt=attempt, name=name, sha256=sha256))
    gates = schema.gate_results
    for result in change.gates:
        connection.execute(
            delete(gates).where(
                gates.c.job == job.id, gates.c.attempt == attempt, gates.c.gate == result.gate.value
            )
        )
        connection.execute(
            insert(gates).values(
                job=job.id,
                attempt=attempt,
                gate=result.gate.value,
                ruling=result.ruling.value,
                basis=result.basis.value if result.basis else None,
                summary=result.summary,
            )
        )

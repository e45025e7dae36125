"""What happened: events, attempts, artifacts, gate results."""

from typing import Any

from sqlalchemy import Row, select

from farm.events import Event, Logged
from farm.fault import Fault
from farm.gates import Basis, GateName, GateResult, Ruling
from farm.ledger import schema
from farm.ledger.records import Attempt
from farm.ledger.rows import Part, job_row, log_events, to_logged


class History(Part):
    """Reads the past of runs and jobs, and adds free-standing events to it."""

    def events(
        self, *, run: str | None = None, job: str | None = None, after: int = 0, limit: int = 10_000
    ) -> tuple[Logged, ...]:
        """Events after sequence number `after`, oldest first, of a run, of a job or of all."""
        table = schema.events
        query = select(table).where(table.c.seq > after).order_by(table.c.seq).limit(limit)
        if run is not None:
            query = query.where(table.c.run == run)
        if job is not None:
            query = query.where(table.c.job == job)
        with self._database.read() as connection:
            return tuple(to_logged(row) for row in connection.execute(query))

    def log(self, job_id: str, *events: Event) -> None:
        """Append events of a job that go with no transition. Raises UnknownJob."""
        with self._database.write() as connection:
            row = job_row(connection, job_id)
            log_events(connection, at=self._clock(), run=row.run, job=row.id, attempt=row.attempt, events=events)

    def attempts(self, job_id: str) -> tuple[Attempt, ...]:
        """The attempts of a job, first one first."""
        table = schema.attempts
        query = select(table).where(table.c.job == job_id).order_by(table.c.number)
        with self._database.read() as connection:
            return tuple(_to_attempt(row) for row in connection.execute(query))

    def artifacts(self, job_id: str, *, attempt: int | None = None) -> dict[str, str]:
        """Name -> sha256 of what an attempt left behind; of the job's current attempt when not given."""
        table = schema.artifacts
        with self._database.read() as connection:
            number = job_row(connection, job_id).attempt if attempt is None else attempt
            query = select(table.c.name, table.c.sha256).where(table.c.job == job_id, table.c.attempt == number)
            return {row.name: row.sha256 for row in connection.execute(query.order_by(table.c.name))}

    def gates(self, job_id: str, *, attempt: int | None = None) -> tuple[GateResult, ...]:
        """Gate results of an attempt; of the job's current attempt when not given."""
        table = schema.gate_results
        with self._database.read() as connection:
            number = job_row(connection, job_id).attempt if attempt is None else attempt
            query = select(table).where(table.c.job == job_id, table.c.attempt == number)
            found = {row.gate: row for row in connection.execute(query)}
        return tuple(_to_gate(found[gate.value]) for gate in GateName if gate.value in found)


def _to_attempt(row: Row[Any]) -> Attempt:
    return Attempt(
        job=row.job,
        number=row.number,
        started_at=row.started_at,
        ended_at=row.ended_at,
        fault=None if row.fault is None else Fault(row.fault),
        summary=row.summary,
        trace=row.trace,
    )


def _to_gate(row: Row[Any]) -> GateResult:
    return GateResult(
        gate=GateName(row.gate),
        ruling=Ruling(row.ruling),
        basis=None if row.basis is None else Basis(row.basis),
        summary=row.summary,
    )

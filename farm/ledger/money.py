"""What model calls cost: tokens of jobs, money reserved before a call and settled after it, answers paid for."""

import hashlib
import secrets
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from farm.job import JobState
from farm.ledger import schema
from farm.ledger.records import Answer, BudgetReached, Budgets, JobRef, Reservation, Scope, Usage
from farm.ledger.rows import Part, job_row
from farm.pipeline.stage import Stage

#: A reservation that nobody settles ends after this time, seconds: longer than any call may take.
RESERVED_S = 3600.0
_TOKEN = "farm-"


class Money(Part):
    """Tokens, budgets and usage. All sums are integers: millionths of a dollar."""

    def issue_token(self, job_id: str) -> str:
        """A new secret for the job's box to ask the gateway with; only its digest is kept. Raises UnknownJob."""
        token = _TOKEN + secrets.token_urlsafe(32)
        with self._database.write() as connection:
            job_row(connection, job_id)
            connection.execute(
                insert(schema.tokens).values(sha256=_digest(token), job=job_id, issued_at=self._clock())
            )
        return token

    def revoke_tokens(self, job_id: str) -> None:
        """No token of the job is good any more."""
        table = schema.tokens
        with self._database.write() as connection:
            connection.execute(
                update(table)
                .where(table.c.job == job_id, table.c.revoked_at.is_(None))
                .values(revoked_at=self._clock())
            )

    def token_job(self, token: str) -> JobRef | None:
        """Whose token it is; None for one that is unknown, revoked, or of a job whose box does not work now."""
        table, jobs = schema.tokens, schema.jobs
        query = (
            select(jobs.c.id, jobs.c.run, jobs.c.op, jobs.c.attempt)
            .join(table, table.c.job == jobs.c.id)
            .where(table.c.sha256 == _digest(token), table.c.revoked_at.is_(None))
            .where(jobs.c.state == JobState.RUNNING.value, jobs.c.cancel_requested.is_(False))
        )
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return JobRef(run=row.run, job=row.id, op=row.op, attempt=row.attempt)

    def reserve(
        self, job_id: str, micro_usd: int, limits: Budgets, *, ttl_s: float = RESERVED_S
    ) -> Reservation | BudgetReached:
        """Keep money for a call, in one transaction over job, run and day. Raises UnknownJob."""
        now = self._clock()
        with self._database.write() as connection:
            _alone(connection)
            job = job_row(connection, job_id)
            for scope, limit in self._limits(connection, job.run, limits).items():
                spent, reserved = self._used(connection, scope, job, now)
                if spent + reserved + micro_usd > limit:
                    fits = spent + micro_usd <= limit
                    short = schema.shortfalls
                    connection.execute(short.delete().where(short.c.job == job_id))
                    connection.execute(insert(short).values(job=job_id, micro_usd=micro_usd))
                    return BudgetReached(scope=scope, limit=limit, spent=spent, reserved=reserved, fits_later=fits)
            kept = Reservation(id=secrets.token_hex(8), micro_usd=micro_usd, until=now + ttl_s)
            connection.execute(
                insert(schema.reservations).values(
                    id=kept.id, run=job.run, job=job_id, micro_usd=micro_usd, at=now, until=kept.until
                )
            )
            return kept

    def settle(self, reservation: Reservation, usage: Usage | None, answer: Answer | None = None) -> None:
        """End a reservation; `usage` is what the call came to, None: it cost nothing. Twice does no harm.

        An answer that usage paid for is remembered in the same transaction: neither stands without the other.
        """
        table = schema.reservations
        with self._database.write() as connection:
            connection.execute(table.delete().where(table.c.id == reservation.id))
            if usage is not None:
                _count(connection, usage)
                if answer is not None:
                    self._remember(connection, usage.job, answer)

    def add_usage(self, usage: Usage) -> None:
        """Count a model call; one that is counted already changes nothing."""
        with self._database.write() as connection:
            _count(connection, usage)

    def has_budget(self, job_id: str, micro_usd: int, limits: Budgets) -> bool:
        """Whether a call of this cost could be reserved now. Raises UnknownJob."""
        now = self._clock()
        with self._database.read() as connection:
            job = job_row(connection, job_id)
            return all(
                sum(self._used(connection, scope, job, now)) + micro_usd <= limit
                for scope, limit in self._limits(connection, job.run, limits).items()
            )

    def affordable(self, job_id: str, limits: Budgets) -> bool:
        """Whether the call that the job's budgets did not cover last would fit now. Raises UnknownJob."""
        short = schema.shortfalls
        with self._database.read() as connection:
            wanted = connection.scalar(select(short.c.micro_usd).where(short.c.job == job_id))
        return self.has_budget(job_id, int(wanted or 0), limits)

    def usage(
        self, job_id: str | None = None, *, run: str | None = None, since: float | None = None
    ) -> tuple[Usage, ...]:
        """Model calls in the order of their time: of a job, of a run, after a time, or all."""
        table = schema.usage
        query = select(table).order_by(table.c.at, table.c.request)
        if job_id is not None:
            query = query.where(table.c.job == job_id)
        if run is not None:
            query = query.where(table.c.run == run)
        if since is not None:
            query = query.where(table.c.at >= since)
        with self._database.read() as connection:
            return tuple(_to_usage(row) for row in connection.execute(query))

    def keep_answer(self, job_id: str, answer: Answer) -> None:
        """Remember an answer that was paid for; the first one to a question stays."""
        with self._database.write() as connection:
            self._remember(connection, job_id, answer)

    def answer(self, question: str) -> Answer | None:
        """The answer that was paid for, or None."""
        table = schema.answers
        with self._database.read() as connection:
            row = connection.execute(select(table).where(table.c.question == question)).one_or_none()
        return None if row is None else Answer(question=row.question, sha256=row.sha256, request=row.request)

    def _remember(self, connection: Connection, job_id: str, answer: Answer) -> None:
        table = schema.answers
        if connection.scalar(select(table.c.sha256).where(table.c.question == answer.question)) is None:
            connection.execute(insert(table).values(**asdict(answer), job=job_id, at=self._clock()))

    def _limits(self, connection: Connection, run: str, limits: Budgets) -> dict[Scope, int]:
        own = connection.scalar(select(schema.runs.c.budget_micro_usd).where(schema.runs.c.id == run))
        given = {Scope.JOB: limits.job, Scope.RUN: limits.run if own is None else own, Scope.DAY: limits.day}
        return {scope: limit for scope, limit in given.items() if limit is not None}

    def _used(self, connection: Connection, scope: Scope, job: Row[Any], now: float) -> tuple[int, int]:
        """Settled and reserved money of a scope."""
        midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        spent, kept = schema.usage, schema.reservations
        settled = select(func.coalesce(func.sum(spent.c.cost_micro_usd), 0))
        reserved = select(func.coalesce(func.sum(kept.c.micro_usd), 0)).where(kept.c.until > now)
        match scope:
            case Scope.JOB:
                settled, reserved = settled.where(spent.c.job == job.id), reserved.where(kept.c.job == job.id)
            case Scope.RUN:
                settled, reserved = settled.where(spent.c.run == job.run), reserved.where(kept.c.run == job.run)
            case Scope.DAY:
                settled = settled.where(spent.c.at >= midnight)
        return int(connection.scalar(settled) or 0), int(connection.scalar(reserved) or 0)


def _alone(connection: Connection) -> None:
    """Holds a row that every reservation takes first: sums of two that run at once would miss each other."""
    table = schema.meta
    connection.execute(update(table).where(table.c.name == "version").values(value=table.c.value))


def _count(connection: Connection, usage: Usage) -> None:
    table = schema.usage
    if connection.scalar(select(table.c.request).where(table.c.request == usage.request)) is None:
        connection.execute(insert(table).values(**asdict(usage) | {"stage": usage.stage.value}))


def _to_usage(row: Row[Any]) -> Usage:
    fields = dict(row._mapping)
    return Usage(**{**fields, "stage": Stage(fields["stage"]), "whole": bool(fields["whole"])})


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

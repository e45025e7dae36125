"""Runs and jobs as they are submitted and read."""

import re
import secrets
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy import func, insert, select, update

from farm.errors import UnknownRun, UsageError
from farm.events import Submitted
from farm.job import FINAL, WAITING, Accept, Job, JobState, Run
from farm.ledger import schema
from farm.ledger.records import RunStatus
from farm.ledger.rows import Part, job_row, log_events, to_job, to_run
from farm.pipeline.stage import ExecutorKind

# A job's id becomes part of branch, box and file names.
_OP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


class Runs(Part):
    """Submits runs and answers questions about runs and jobs."""

    def submit(
        self,
        *,
        recipe: str,
        repo: str,
        push_to: str | None,
        base: str,
        accept: Accept,
        attempts: int,
        ops: Sequence[str],
        executors: ExecutorKind | None = None,
        budget_micro_usd: int | None = None,
    ) -> Run:
        """Store a run with one QUEUED job an op, all or nothing. Raises UsageError for unusable ops."""
        names = tuple(dict.fromkeys(ops))
        problems = [f"op name {name!r} is not usable" for name in names if not _OP.fullmatch(name)]
        if not names:
            problems.append("no ops were given")
        if attempts < 1:
            problems.append(f"attempts must be at least 1, not {attempts}")
        if budget_micro_usd is not None and budget_micro_usd < 0:
            problems.append("a budget is not negative")
        if problems:
            raise UsageError("; ".join(problems))
        now = self._clock()
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
        with self._database.write() as connection:
            run_id = f"r-{stamp}-{secrets.token_hex(2)}"
            while connection.scalar(select(schema.runs.c.id).where(schema.runs.c.id == run_id)):
                run_id = f"r-{stamp}-{secrets.token_hex(2)}"
            run = Run(
                id=run_id,
                recipe=recipe,
                repo=repo,
                push_to=push_to,
                base=base,
                accept=accept,
                attempts=attempts,
                executors=executors,
                budget_micro_usd=budget_micro_usd,
                created_at=now,
            )
            connection.execute(
                insert(schema.runs).values(
                    id=run.id,
                    recipe=recipe,
                    repo=repo,
                    push_to=push_to,
                    base=base,
                    accept=accept.value,
                    attempts=attempts,
                    executors=None if executors is None else executors.value,
                    budget_micro_usd=budget_micro_usd,
                    created_at=now,
                )
            )
            for op in names:
                job_id = f"{run.id}.{op}"
                connection.execute(
                    insert(schema.jobs).values(
                        id=job_id,
                        run=run.id,
                        op=op,
                        state=JobState.QUEUED.value,
                        updated_at=now,
                        poll_at=now,
                    )
                )
                log_events(connection, at=now, run=run.id, job=job_id, attempt=0, events=[Submitted()])
        return run

    def set_budget(self, run_id: str, micro_usd: int) -> Run:
        """Give a run another budget for its model calls. Raises UnknownRun, UsageError for a negative one."""
        if micro_usd < 0:
            raise UsageError("a budget is not negative")
        self.run(run_id)
        with self._database.write() as connection:
            table = schema.runs
            connection.execute(update(table).where(table.c.id == run_id).values(budget_micro_usd=micro_usd))
        return self.run(run_id)

    def run(self, run_id: str) -> Run:
        """The run with this id. Raises UnknownRun."""
        with self._database.read() as connection:
            row = connection.execute(select(schema.runs).where(schema.runs.c.id == run_id)).one_or_none()
        if row is None:
            raise UnknownRun(f"there is no run {run_id!r}; `farm status` lists them")
        return to_run(row)

    def runs(self, *, limit: int = 50) -> tuple[Run, ...]:
        """The latest runs, newest first."""
        query = select(schema.runs).order_by(schema.runs.c.created_at.desc(), schema.runs.c.id.desc())
        with self._database.read() as connection:
            return tuple(to_run(row) for row in connection.execute(query.limit(limit)))

    def job(self, job_id: str) -> Job:
        """The job with this id. Raises UnknownJob."""
        with self._database.read() as connection:
            return to_job(job_row(connection, job_id))

    def jobs(
        self,
        *,
        run: str | None = None,
        states: Collection[JobState] | None = None,
        ids: Collection[str] | None = None,
    ) -> tuple[Job, ...]:
        """Jobs in the order of their ids, narrowed to a run, to states, to ids where given."""
        table = schema.jobs
        query = select(table).order_by(table.c.id)
        if run is not None:
            query = query.where(table.c.run == run)
        if states is not None:
            query = query.where(table.c.state.in_([state.value for state in states]))
        if ids is not None:
            query = query.where(table.c.id.in_(list(ids)))
        with self._database.read() as connection:
            return tuple(to_job(row) for row in connection.execute(query))

    def status(self, run_id: str) -> RunStatus:
        """A run with its jobs counted by state. Raises UnknownRun."""
        run = self.run(run_id)
        table = schema.jobs
        query = (
            select(table.c.state, func.count().label("number"), func.max(table.c.updated_at).label("latest"))
            .where(table.c.run == run_id)
            .group_by(table.c.state)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return RunStatus(
            run=run,
            counts={JobState(row.state): row.number for row in rows},
            updated_at=max((row.latest for row in rows), default=run.created_at),
        )

    def counts(self, states: Collection[JobState]) -> dict[JobState, int]:
        """How many jobs of all runs are in each of these states."""
        table = schema.jobs
        query = (
            select(table.c.state, func.count().label("number"))
            .where(table.c.state.in_([state.value for state in states]))
            .group_by(table.c.state)
        )
        with self._database.read() as connection:
            found = {JobState(row.state): row.number for row in connection.execute(query)}
        return {state: found.get(state, 0) for state in states}

    def moving(self) -> int:
        """How many jobs have something to do now: not final, and not waiting unless to be cancelled."""
        table = schema.jobs
        still = [state.value for state in FINAL | WAITING]
        query = (
            select(func.count())
            .select_from(table)
            .where(
                table.c.state.not_in(still)
                | (table.c.state.in_([state.value for state in WAITING]) & table.c.cancel_requested.is_(True))
            )
        )
        with self._database.read() as connection:
            return connection.scalar(query) or 0

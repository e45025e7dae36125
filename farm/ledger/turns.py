"""Jobs that wait for a turn, a box or a GPU, and the order in which they get one."""

from collections.abc import Collection

from sqlalchemy import Connection, delete, insert, select, update

from farm.job import JobState, WaitsFor
from farm.ledger import schema
from farm.ledger.rows import Part

#: A job that is this much late with its next question is not served now and keeps nobody waiting, seconds.
LATE_S = 15.0
#: States in which a job can wait for something.
ASKING = {
    WaitsFor.TURN: (JobState.QUEUED,),
    WaitsFor.BOX: (JobState.RUNNING, JobState.VERIFYING),
    WaitsFor.GPU: (JobState.AWAITING_GPU,),
}


class Turns(Part):
    """Who comes before whom: a job that verifies before one that runs, then the one that was submitted first."""

    def ahead(self, job_id: str, what: WaitsFor) -> tuple[str, ...]:
        """Ids of the jobs that wait for the same and come before this one, first one first."""
        asking = [state.value for state in ASKING[what]]
        jobs, runs, waits = schema.jobs, schema.runs, schema.waits
        columns = (jobs.c.id, jobs.c.state, jobs.c.run, runs.c.created_at)
        query = (
            select(*columns)
            .select_from(jobs.join(runs, jobs.c.run == runs.c.id).outerjoin(waits, jobs.c.id == waits.c.job))
            .where(
                (jobs.c.id == job_id)
                | (
                    jobs.c.state.in_(asking)
                    & jobs.c.cancel_requested.is_(False)
                    & (waits.c.what == what.value)
                    & (waits.c.until > self._clock())
                )
            )
            .order_by((jobs.c.state != JobState.VERIFYING.value), runs.c.created_at, jobs.c.run, jobs.c.id)
        )
        with self._database.read() as connection:
            order = [row.id for row in connection.execute(query)]
        return tuple(order[: order.index(job_id)]) if job_id in order else tuple(order)

    def waits(self, job_ids: Collection[str]) -> dict[str, WaitsFor]:
        """What each of these jobs waits for; jobs that wait for nothing are left out."""
        jobs, waits = schema.jobs, schema.waits
        query = select(waits.c.job, waits.c.what, jobs.c.state).join(jobs, jobs.c.id == waits.c.job)
        with self._database.read() as connection:
            rows = connection.execute(query.where(waits.c.job.in_(list(job_ids)))).all()
        found = {row.job: (WaitsFor(row.what), JobState(row.state)) for row in rows}
        return {job: what for job, (what, state) in found.items() if state in ASKING[what]}

    def wake(self, job_id: str) -> None:
        """Let a waiting job's next step be due now; nothing happens to one that waits for nothing."""
        jobs, waits = schema.jobs, schema.waits
        with self._database.write(durable=False) as connection:
            waiting = select(waits.c.job).where(waits.c.job == job_id)
            connection.execute(
                update(jobs).where(jobs.c.id == job_id, jobs.c.id.in_(waiting)).values(poll_at=self._clock())
            )


def note_wait(connection: Connection, job_id: str, what: WaitsFor | None, asks_at: float) -> None:
    """Write down what a job waits for and when it asks again; None: it waits for nothing."""
    table = schema.waits
    connection.execute(delete(table).where(table.c.job == job_id))
    if what is not None:
        connection.execute(insert(table).values(job=job_id, what=what.value, until=asks_at + LATE_S))

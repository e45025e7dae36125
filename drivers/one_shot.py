"""The spine in one process: every job's due step, one after the other, without Redis or workers."""

from collections.abc import Callable, Sequence

from farm.job import FINAL, WAITING, Job

#: Wait when no job says when its next step is due, seconds.
IDLE_S = 0.2


def run_here(jobs: Sequence[Job], advance: Callable[[str], float | None]) -> float:
    """Take one step of each job that moves; seconds until the earliest next one.

    `advance` takes one step and gives the seconds until the next, or None when somebody else has the job.
    """
    due = [advance(job.id) for job in jobs if job.state not in FINAL | WAITING]
    known = [seconds for seconds in due if seconds is not None]
    return min(known, default=IDLE_S)

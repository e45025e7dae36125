"""What a run came to: whether anything still moves, and the exit code that says so."""

from collections import Counter
from collections.abc import Collection, Sequence

from farm.job import FINAL, WAITING, Job, JobState

ALL_ACCEPTED = 0
SOME_WAIT = 3
SOME_FAILED = 4


def settled(jobs: Sequence[Job], waits: Collection[str] = ()) -> bool:
    """Whether every job is final or waits for something outside; `waits` names those that wait for the farm."""
    return all(job.state in FINAL | WAITING and job.id not in waits for job in jobs)


def exit_code(jobs: Sequence[Job]) -> int:
    """4 when a job failed or was cancelled, else 3 when one is not final, else 0. No job: 0."""
    states = {job.state for job in jobs}
    if states & {JobState.FAILED, JobState.CANCELLED}:
        return SOME_FAILED
    return ALL_ACCEPTED if states <= {JobState.ACCEPTED} else SOME_WAIT


def counts(jobs: Sequence[Job]) -> dict[str, int]:
    """Jobs by state, in the order of a job's life; states without a job are left out."""
    tally = Counter(job.state for job in jobs)
    return {state.value: tally[state] for state in JobState if tally[state]}

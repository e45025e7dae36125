"""Every transition that a worker writes, with the worker killed right before and right after the write.

The transitions come from the table, so that a new one is covered by itself. Each has a job that is
never killed as its measure.
"""

import time
from dataclasses import dataclass

import pytest

from farm.events import Moved
from farm.fault import Fault
from farm.job import FINAL, TRANSITIONS, JobState
from workers.scripted import Act, Block, Script, way

pytestmark = pytest.mark.redis

#: So many jobs can stand blocked when their worker is killed.
CONCURRENCY = 16
#: For all of the matrix on a busy machine; Redis would not deliver anything anew within hours.
ALL_LIMIT_S = 900.0
PAIRS = tuple((state, to) for state in JobState for to in sorted(TRANSITIONS[state]))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One transition and where the worker is killed."""

    state: JobState
    to: JobState
    written: bool | None  #: after the write, before it, or never

    @property
    def op(self) -> str:
        when = {None: "control", True: "after", False: "before"}[self.written]
        return f"{self.state}-{self.to}-{when}"

    @property
    def script(self) -> Script:
        parked_from = self.to if self.to not in FINAL else JobState.RUNNING
        left = parked_from if self.state is JobState.PARKED else self.state
        acts = [Act(to=to) for to in way(JobState.QUEUED, left)]
        if self.state is JobState.PARKED:
            acts.append(Act(to=JobState.PARKED))
        fault = {JobState.QUEUED: Fault.AGENT, JobState.FAILED: Fault.UNSUPPORTED}.get(self.to)
        block = None if self.written is None else Block(move=len(acts), written=self.written)
        return Script(acts=(*acts, Act(to=self.to, fault=fault)), block=block)


def cases(pairs):
    return [Case(state=state, to=to, written=w) for state, to in pairs for w in (None, False, True)]


def test_the_matrix_has_every_transition_of_the_table():
    assert {(case.state, case.to) for case in cases(PAIRS)} == {
        (state, to) for state, targets in TRANSITIONS.items() for to in targets
    }


def test_a_killed_worker_changes_no_end(make_farm):
    farm = make_farm(concurrency=CONCURRENCY)
    matrix = cases(PAIRS)
    for case in matrix:
        farm.script(case.op, case.script)
    jobs = {job.op: job for job in farm.submit([case.op for case in matrix])}
    to_kill = {jobs[case.op].id for case in matrix if case.written is not None}
    farm.start_worker()
    killed_at: dict[str, float] = {}
    end_at = time.monotonic() + ALL_LIMIT_S
    while standing := farm.standing():
        blocked = farm.blocked() - killed_at.keys()
        if len(blocked) == CONCURRENCY or (blocked and standing <= farm.blocked() - killed_at.keys()):
            farm.kill_worker()
            killed_at |= dict.fromkeys(farm.blocked() - killed_at.keys(), time.time())
            farm.start_worker(ready=False)
        assert time.monotonic() < end_at, standing
        time.sleep(0.2)
    assert killed_at.keys() == to_kill

    def history(case):
        events = farm.ledger.events(job=jobs[case.op].id)
        return [(e.event.source, e.event.to) for e in events if isinstance(e.event, Moved)]

    def end(case):
        job = farm.ledger.job(jobs[case.op].id)
        facts = (job.state, job.attempt, job.transients, job.fault, job.summary, job.commit, job.branch)
        return (facts[:-1], history(case), farm.effects(job.id), len(farm.ledger.attempts(job.id)))

    ends = {(case.state, case.to, case.written): end(case) for case in matrix}
    for case in matrix:
        assert (case.state, case.to) in history(case)
        assert ends[case.state, case.to, case.written] == ends[case.state, case.to, None], case.op

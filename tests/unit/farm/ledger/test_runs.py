import re

import pytest

from farm.errors import UnknownJob, UnknownRun, UsageError
from farm.events import Submitted
from farm.job import Accept, JobState


def test_a_run_has_one_queued_job_an_op_and_an_id_with_its_time(ledger, submit, clock):
    jobs = submit("relu", "softmax")
    assert [job.op for job in jobs] == ["relu", "softmax"]
    assert {job.state for job in jobs} == {JobState.QUEUED}
    assert all(job.id == f"{job.run}.{job.op}" and job.attempt == job.fence == 0 for job in jobs)
    assert re.fullmatch(r"r-19700112-134640-[0-9a-f]{4}", jobs[0].run)
    run = ledger.run(jobs[0].run)
    assert (run.accept, run.created_at, run.push_to) == (Accept.MEASURED, clock.now, None)
    assert [type(logged.event) for logged in ledger.events(run=run.id)] == [Submitted, Submitted]


def test_an_op_that_is_named_twice_is_one_job(submit):
    assert len(submit("relu", "relu")) == 1


@pytest.mark.parametrize("ops", [[], ["../up"], ["a b"], ["-x"], ["a/b"], ["relu", ""], ["a..b"], ["a\n"]])
def test_unusable_ops_are_refused_and_nothing_is_stored(ledger, ops):
    with pytest.raises(UsageError):
        ledger.submit(recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=2, ops=ops)
    assert ledger.runs() == ()
    assert ledger.jobs() == ()


def test_a_run_without_attempts_is_refused(ledger):
    with pytest.raises(UsageError, match="attempts"):
        ledger.submit(
            recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=0, ops=["relu"]
        )


def test_what_is_not_there_is_said_by_name(ledger):
    with pytest.raises(UnknownRun, match="r-1"):
        ledger.run("r-1")
    with pytest.raises(UnknownRun):
        ledger.status("r-1")
    with pytest.raises(UnknownJob, match=r"r-1\.relu"):
        ledger.job("r-1.relu")


def test_runs_are_listed_newest_first_and_jobs_by_run_state_and_id(ledger, submit, clock):
    first = submit("relu", "softmax")
    clock.now += 10
    second = submit("relu")
    assert [run.id for run in ledger.runs()] == [second[0].run, first[0].run]
    assert ledger.jobs(run=second[0].run) == second
    assert len(ledger.jobs(states=[JobState.QUEUED])) == 3
    assert ledger.jobs(states=[JobState.FAILED]) == ()
    assert ledger.jobs(ids=[first[1].id]) == (first[1],)


def test_a_status_counts_states_and_waiting_jobs_do_not_move(ledger, submit, clock):
    jobs = submit("a", "b", "c")
    clock.now += 5
    ledger.request_cancel(jobs[0].id)
    status = ledger.status(jobs[0].run)
    assert status.counts == {JobState.CANCELLED: 1, JobState.QUEUED: 2}
    assert status.updated_at == clock.now
    assert ledger.moving() == 2


def test_jobs_of_all_runs_are_counted_by_state(ledger):
    for ops in (["a", "b"], ["a"]):
        ledger.submit(recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=2, ops=ops)
    assert ledger.counts((JobState.QUEUED, JobState.RUNNING)) == {JobState.QUEUED: 3, JobState.RUNNING: 0}

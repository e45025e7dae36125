"""Who waits for a turn or a box, and who comes first."""

import pytest

from farm.job import JobState, WaitsFor
from farm.ledger import Change
from farm.ledger.turns import ASKING, LATE_S
from tests.unit.farm.ledger.test_moves import bring


def ask(ledger, job_id, what, after_s=1.0):
    """One step that ends in waiting."""
    grant = ledger.acquire(job_id, "test", ttl_s=60)
    ledger.stay(grant.job, Change(after_s=after_s, waits=what))


@pytest.fixture
def waiting(ledger, submit, clock):
    """Jobs of runs that were submitted one after the other, brought to a state and left waiting there."""

    def make(*states):
        ids = []
        for state in states:
            clock.now += 1
            (job,) = submit()
            bring(ledger, job.id, state)
            ids.append(job.id)
        for job_id in reversed(ids):
            state = ledger.job(job_id).state
            ask(ledger, job_id, next(what for what, states in ASKING.items() if state in states))
        return ids

    return make


def test_what_was_submitted_first_comes_first_whoever_asked_first(ledger, waiting):
    a, b, c = waiting(*[JobState.QUEUED] * 3)
    assert [ledger.ahead(job, WaitsFor.TURN) for job in (a, b, c)] == [(), (a,), (a, b)]


def test_jobs_of_one_run_come_in_the_order_of_their_names(ledger, submit):
    first, second = submit("add", "zip")
    for job in (second, first):
        ask(ledger, job.id, WaitsFor.TURN)
    assert ledger.ahead(second.id, WaitsFor.TURN) == (first.id,)
    assert ledger.ahead(first.id, WaitsFor.TURN) == ()


def test_a_job_that_verifies_comes_before_older_ones_that_run(ledger, waiting):
    a, b, c = waiting(JobState.RUNNING, JobState.RUNNING, JobState.VERIFYING)
    assert ledger.ahead(a, WaitsFor.BOX) == (c,)
    assert ledger.ahead(b, WaitsFor.BOX) == (c, a)
    assert ledger.ahead(c, WaitsFor.BOX) == ()


def test_a_job_that_is_not_served_any_more_keeps_nobody_waiting(ledger, waiting, clock):
    a, b = waiting(JobState.RUNNING, JobState.RUNNING)
    clock.now += 1.0 + LATE_S
    assert ledger.ahead(b, WaitsFor.BOX) == ()
    ask(ledger, a, WaitsFor.BOX)
    assert ledger.ahead(b, WaitsFor.BOX) == (a,)


@pytest.mark.parametrize("what", WaitsFor)
def test_waits_end_with_the_next_step_that_waits_for_nothing(ledger, waiting, clock, what):
    state = ASKING[what][0]
    a, b = waiting(state, state)
    assert ledger.waits([a, b]) == {a: what, b: what}
    clock.now += 2
    ask(ledger, a, None)
    assert ledger.waits([a, b]) == {b: what}
    assert ledger.ahead(b, what) == ()


def test_waits_end_with_a_transition_and_with_the_wish_to_cancel(ledger, waiting, clock):
    a, b = waiting(JobState.QUEUED, JobState.QUEUED)
    ledger.request_cancel(a)
    assert ledger.ahead(b, WaitsFor.TURN) == ()
    clock.now += 2
    bring(ledger, b, JobState.RUNNING)
    assert ledger.waits([a, b]) == {}


def test_a_woken_job_is_due_at_once_and_one_that_backs_off_is_not(ledger, submit, clock):
    waits, backs_off = submit("a", "b")
    ask(ledger, waits.id, WaitsFor.TURN, after_s=60)
    ask(ledger, backs_off.id, None, after_s=60)
    for job in (waits, backs_off):
        assert ledger.acquire(job.id, "test", ttl_s=60) is None
        ledger.wake(job.id)
    assert ledger.acquire(waits.id, "test", ttl_s=60) is not None
    assert ledger.acquire(backs_off.id, "test", ttl_s=60) is None

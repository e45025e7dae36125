import pytest

from farm.errors import IllegalTransition, StaleFence
from farm.events import AttemptEnded, AttemptStarted, Moved, TransientRetry
from farm.fault import Fault
from farm.job import FINAL, TRANSITIONS, JobState, ParkReason
from farm.ledger import TRACE, Change, Charge
from farm.ledger.moves import check_transition
from tests import builders
from workers.scripted import way

PAIRS = [(state, to) for state in JobState for to in sorted(TRANSITIONS[state])]
FORBIDDEN = [(state, to) for state in JobState for to in JobState if to not in TRANSITIONS[state]]

JOB = builders.job()


def change_for(to, **more):
    match to:
        case JobState.PARKED:
            return Change(park_reason=ParkReason.MODEL, summary="overloaded", **more)
        case JobState.ACCEPTED:
            return Change(commit="c" * 40, branch="farm/x", **more)
        case JobState.FAILED:
            return Change(fault=Fault.KERNEL, summary="wrong", charge=Charge.ATTEMPT, **more)
        case _:
            return Change(**more)


def step(ledger, job_id, to, **more):
    grant = ledger.acquire(job_id, "test", ttl_s=60)
    return ledger.move(grant.job, to, change_for(to, **more))


def bring(ledger, job_id, state, parked_from=JobState.RUNNING):
    """Move a fresh job to a state along the table."""
    aside = {
        JobState.PARKED: parked_from,
        JobState.FAILED: JobState.RUNNING,
        JobState.CANCELLED: JobState.RUNNING,
    }
    for to in way(JobState.QUEUED, aside.get(state, state)):
        step(ledger, job_id, to)
    if state in aside:
        step(ledger, job_id, state)
    return ledger.job(job_id)


@pytest.mark.parametrize(("state", "to"), PAIRS)
def test_every_transition_of_the_table_is_written_once(ledger, submit, clock, state, to):
    (job,) = submit()
    parked_from = to if state is JobState.PARKED and to not in FINAL else JobState.RUNNING
    before = bring(ledger, job.id, state, parked_from)
    assert before.state is state
    clock.now += 1
    grant = ledger.acquire(job.id, "test", ttl_s=60)
    after = ledger.move(grant.job, to, change_for(to))
    assert after == ledger.job(job.id)
    assert (after.state, after.updated_at, after.fence) == (to, clock.now, grant.job.fence)
    assert after.parked_from == (state if to is JobState.PARKED else None)
    last = ledger.events(job=job.id)[-1].event
    assert isinstance(last, Moved)
    assert (last.source, last.to, last.fence) == (state, to, grant.job.fence)
    with pytest.raises(StaleFence):
        ledger.move(grant.job, to, change_for(to))


@pytest.mark.parametrize(("state", "to"), FORBIDDEN)
def test_a_transition_outside_of_the_table_is_illegal(state, to):
    parked_from = JobState.RUNNING if state is JobState.PARKED else None
    with pytest.raises(IllegalTransition):
        check_transition(JOB.evolve(state=state, parked_from=parked_from), to, change_for(to))


def test_an_illegal_transition_is_refused_before_anything_is_written(ledger, submit):
    (job,) = submit()
    here = bring(ledger, job.id, JobState.RUNNING)
    with pytest.raises(IllegalTransition):
        ledger.move(here, JobState.ACCEPTED, change_for(JobState.ACCEPTED, artifacts={"x": "0" * 64}))
    assert ledger.job(job.id) == here
    assert ledger.artifacts(job.id) == {}


def test_a_parked_job_only_returns_to_the_state_it_left(ledger, submit):
    (job,) = submit()
    parked = bring(ledger, job.id, JobState.PARKED, JobState.VERIFYING)
    assert (parked.parked_from, parked.park_reason) == (JobState.VERIFYING, ParkReason.MODEL)
    for other in TRANSITIONS[JobState.PARKED] - {JobState.VERIFYING, JobState.CANCELLED}:
        with pytest.raises(IllegalTransition):
            ledger.move(parked, other, Change())
    back = step(ledger, job.id, JobState.VERIFYING)
    assert (back.state, back.parked_from, back.park_reason) == (JobState.VERIFYING, None, None)


@pytest.mark.parametrize(
    ("to", "change"),
    [
        (JobState.PARKED, Change()),
        (JobState.PREPARING, Change(park_reason=ParkReason.DISK)),
    ],
)
def test_a_park_reason_belongs_to_parking_alone(ledger, submit, to, change):
    (job,) = submit()
    with pytest.raises(IllegalTransition):
        ledger.move(job, to, change)


def test_no_acceptance_without_a_commit_and_no_failure_without_a_fault(ledger, submit):
    (job,) = submit()
    landing = bring(ledger, job.id, JobState.LANDING)
    with pytest.raises(IllegalTransition, match="commit"):
        ledger.move(landing, JobState.ACCEPTED, Change())
    with pytest.raises(IllegalTransition, match="fault"):
        ledger.move(landing, JobState.FAILED, Change())


def test_a_charged_attempt_ends_with_its_trace_and_the_next_one_has_the_next_number(ledger, submit, clock):
    (job,) = submit()
    bring(ledger, job.id, JobState.RUNNING)
    clock.now += 7
    failed = Change(charge=Charge.ATTEMPT, fault=Fault.AGENT, summary="no kernel", artifacts={TRACE: "a" * 64})
    grant = ledger.acquire(job.id, "w", ttl_s=9)
    queued = ledger.move(grant.job, JobState.QUEUED, failed)
    assert (queued.attempt, queued.transients, queued.fault) == (1, 0, None)
    assert step(ledger, job.id, JobState.PREPARING).attempt == 2
    first, second = ledger.attempts(job.id)
    assert (first.fault, first.summary, first.trace) == (Fault.AGENT, "no kernel", "a" * 64)
    assert (first.ended_at, second.ended_at) == (clock.now, None)
    assert ledger.artifacts(job.id, attempt=1) == {TRACE: "a" * 64}
    assert ledger.artifacts(job.id) == {}
    events = [logged.event for logged in ledger.events(job=job.id)]
    assert AttemptEnded(number=1, fault=Fault.AGENT, summary="no kernel", trace="a" * 64) in events
    assert [e.number for e in events if isinstance(e, AttemptStarted)] == [1, 2]


def test_a_transient_retry_goes_on_with_the_same_attempt(ledger, submit):
    (job,) = submit()
    bring(ledger, job.id, JobState.RUNNING)
    retry = Change(charge=Charge.TRANSIENT, fault=Fault.ENV, summary="no compiler")
    grant = ledger.acquire(job.id, "w", ttl_s=9)
    assert ledger.move(grant.job, JobState.QUEUED, retry).transients == 1
    again = step(ledger, job.id, JobState.PREPARING)
    assert (again.attempt, again.transients) == (1, 1)
    assert len(ledger.attempts(job.id)) == 1
    events = [logged.event for logged in ledger.events(job=job.id)]
    assert TransientRetry(fault=Fault.ENV, summary="no compiler", used=1) in events


def test_staying_keeps_the_state_and_stores_what_was_found(ledger, submit, clock):
    (job,) = submit()
    bring(ledger, job.id, JobState.RUNNING)
    grant = ledger.acquire(job.id, "w", ttl_s=9)
    ledger.stay(grant.job, Change(summary="stage B", artifacts={"log": "1" * 64}, after_s=3))
    after = ledger.job(job.id)
    assert (after.state, after.summary) == (JobState.RUNNING, "stage B")
    assert ledger.artifacts(job.id) == {"log": "1" * 64}


def test_an_old_failure_is_not_the_summary_of_a_later_success(ledger, submit):
    (job,) = submit()
    bring(ledger, job.id, JobState.LANDING)
    grant = ledger.acquire(job.id, "w", ttl_s=9)
    ledger.stay(grant.job, Change(summary="push refused once"))
    assert step(ledger, job.id, JobState.ACCEPTED).summary is None

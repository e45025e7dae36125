import pytest

from farm.errors import StaleFence, UnknownJob
from farm.events import CancelRequested, LeaseLost, Moved
from farm.job import JobState, ParkReason
from farm.ledger import Change


def test_every_acquisition_has_a_new_fence(ledger, submit, clock):
    (job,) = submit()
    first = ledger.acquire(job.id, "a", ttl_s=10)
    ledger.stay(first.job, Change())
    second = ledger.acquire(job.id, "a", ttl_s=10)
    assert (first.job.fence, second.job.fence) == (1, 2)
    assert ledger.job(job.id).fence == 2


def test_a_live_lease_is_not_granted_again_until_it_runs_out(ledger, submit, clock):
    (job,) = submit()
    assert ledger.acquire(job.id, "a", ttl_s=10) is not None
    clock.now += 9.9
    assert ledger.acquire(job.id, "b", ttl_s=10) is None
    clock.now += 0.2
    grant = ledger.acquire(job.id, "b", ttl_s=10)
    assert (grant.job.fence, grant.losses) == (2, 1)
    lost = [logged.event for logged in ledger.events(job=job.id) if isinstance(logged.event, LeaseLost)]
    assert lost == [LeaseLost(owner="a", fence=1)]


def test_a_renewed_lease_lives_on(ledger, submit, clock):
    (job,) = submit()
    grant = ledger.acquire(job.id, "a", ttl_s=10)
    clock.now += 9
    ledger.renew(job.id, grant.job.fence, ttl_s=10)
    clock.now += 9
    assert ledger.acquire(job.id, "b", ttl_s=10) is None


def test_a_lease_that_another_one_took_is_not_renewed_and_writes_nothing(ledger, submit, clock):
    (job,) = submit()
    old = ledger.acquire(job.id, "a", ttl_s=10)
    clock.now += 11
    new = ledger.acquire(job.id, "b", ttl_s=10)
    with pytest.raises(StaleFence):
        ledger.renew(job.id, old.job.fence, ttl_s=10)
    with pytest.raises(StaleFence):
        ledger.move(old.job, JobState.PREPARING, Change())
    with pytest.raises(StaleFence):
        ledger.stay(old.job, Change(artifacts={"patch": "0" * 64}))
    assert ledger.artifacts(job.id) == {}
    assert ledger.move(new.job, JobState.PREPARING, Change()).state is JobState.PREPARING


def test_a_lease_that_ran_out_may_still_write_while_nobody_else_took_it(ledger, submit, clock):
    (job,) = submit()
    grant = ledger.acquire(job.id, "a", ttl_s=10)
    clock.now += 100
    assert ledger.move(grant.job, JobState.PREPARING, Change()).state is JobState.PREPARING


def test_a_lease_that_was_given_back_is_not_revived_by_a_late_heartbeat(ledger, submit, clock):
    (job,) = submit()
    grant = ledger.acquire(job.id, "a", ttl_s=10)
    ledger.stay(grant.job, Change())
    with pytest.raises(StaleFence):
        ledger.renew(job.id, grant.job.fence, ttl_s=10)
    assert ledger.acquire(job.id, "b", ttl_s=10) is not None


def test_losses_in_a_row_are_counted_and_forgotten_after_a_finished_step(ledger, submit, clock):
    (job,) = submit()
    for losses in range(3):
        grant = ledger.acquire(job.id, "a", ttl_s=1)
        assert grant.losses == losses
        clock.now += 2
    ledger.stay(grant.job, Change())
    assert ledger.acquire(job.id, "a", ttl_s=1).losses == 0


def test_a_message_before_its_time_gets_no_lease(ledger, submit, clock):
    (job,) = submit()
    ledger.stay(ledger.acquire(job.id, "a", ttl_s=10).job, Change(after_s=5))
    clock.now += 4
    assert ledger.acquire(job.id, "a", ttl_s=10) is None
    clock.now += 1
    assert ledger.acquire(job.id, "a", ttl_s=10) is not None


def test_a_final_job_is_not_leased_and_an_unknown_one_is_an_error(ledger, submit):
    (job,) = submit()
    ledger.request_cancel(job.id)
    assert ledger.acquire(job.id, "a", ttl_s=10) is None
    with pytest.raises(UnknownJob):
        ledger.acquire("nothing", "a", ttl_s=10)


def test_due_are_jobs_that_stand_still_without_a_lease_and_were_not_just_nudged(ledger, submit, clock):
    leased, waiting, lost, final = submit("a", "b", "c", "d")
    ledger.acquire(leased.id, "w", ttl_s=100)
    ledger.stay(ledger.acquire(waiting.id, "w", ttl_s=100).job, Change(after_s=50))
    ledger.request_cancel(final.id)

    def due() -> list[str]:
        return [job.id for job in ledger.due(grace_s=1, again_s=5)]

    assert due() == []
    clock.now += 2
    assert due() == [lost.id]
    ledger.nudged([lost.id])
    assert due() == []
    clock.now += 6
    assert due() == [lost.id]
    clock.now += 50
    assert due() == [lost.id, waiting.id]
    clock.now += 50
    assert set(due()) == {leased.id, lost.id, waiting.id}


def test_live_leases_are_counted_by_owner(ledger, submit, clock):
    a, b = submit("a", "b")
    ledger.acquire(a.id, "host_1:1", ttl_s=10)
    ledger.acquire(b.id, "hostx1:1", ttl_s=10)
    assert ledger.live_leases("host_1:") == 1
    clock.now += 11
    assert ledger.live_leases("host_1:") == 0


def test_a_queued_job_is_cancelled_without_any_worker(ledger, submit, clock):
    (job,) = submit()
    cancelled = ledger.request_cancel(job.id)
    assert (cancelled.state, cancelled.cancel_requested) == (JobState.CANCELLED, True)
    kinds = [type(logged.event) for logged in ledger.events(job=job.id)][1:]
    assert kinds == [CancelRequested, Moved]
    assert ledger.request_cancel(job.id).state is JobState.CANCELLED
    assert len(ledger.events(job=job.id)) == 3


def test_cancelling_a_queued_job_refuses_the_write_of_a_stopped_holder(ledger, submit, clock):
    (job,) = submit()
    stopped = ledger.acquire(job.id, "a", ttl_s=10)
    assert ledger.request_cancel(job.id).state is JobState.QUEUED
    clock.now += 11
    assert ledger.request_cancel(job.id).state is JobState.CANCELLED
    with pytest.raises(StaleFence):
        ledger.move(stopped.job, JobState.PREPARING, Change())


def test_a_wish_to_cancel_is_stored_and_makes_a_waiting_job_due_at_once(ledger, submit, clock):
    (job,) = submit()
    grant = ledger.acquire(job.id, "a", ttl_s=10)
    ledger.move(grant.job, JobState.PARKED, Change(park_reason=ParkReason.DISK, summary="disk full", after_s=500))
    assert ledger.moving() == 0
    wished = ledger.request_cancel(job.id)
    assert (wished.state, wished.cancel_requested) == (JobState.PARKED, True)
    assert ledger.moving() == 1
    assert ledger.acquire(job.id, "a", ttl_s=10).job.cancel_requested

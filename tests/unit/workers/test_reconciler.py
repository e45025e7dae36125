import pytest

from farm.errors import BrokerUnavailable
from farm.job import Accept, JobState
from farm.ledger import Change, Ledger
from farm.settings import Worker
from workers.reconciler import REAP, MemoryQueue, Reconciler

WORKER = Worker(reconcile_s=2.0, reap_s=30.0, lease_s=15.0)


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(tmp_path, clock):
    opened = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", clock)
    yield opened
    opened.close()


@pytest.fixture
def jobs(ledger):
    ledger.submit(recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=2, ops=["a", "b"])
    return ledger.jobs()


@pytest.fixture
def queue():
    return MemoryQueue()


@pytest.fixture
def reconciler(ledger, queue, clock):
    return Reconciler(ledger, queue, WORKER, owner="one", clock=clock)


def jobs_in(queue):
    return [name for name in queue.take() if name != REAP]


def test_jobs_that_stand_still_are_enqueued_once_until_they_stand_still_again(reconciler, queue, clock, jobs):
    assert reconciler.look() == 0
    clock.now += 2
    assert reconciler.look() == 2
    assert jobs_in(queue) == [job.id for job in jobs]
    clock.now += 2
    assert reconciler.look() == 0
    clock.now += 6
    assert reconciler.look() == 2


def test_jobs_whose_message_still_lies_in_the_queue_get_no_second_one(reconciler, queue, clock, jobs):
    queue.enqueue(jobs[0], 0.0)
    clock.now += 100
    reconciler.look()
    assert sorted(jobs_in(queue)) == [job.id for job in jobs]


def test_a_lease_keeps_its_job_out_until_it_runs_out(reconciler, queue, clock, jobs, ledger):
    ledger.acquire(jobs[0].id, "w", ttl_s=15)
    clock.now += 10
    reconciler.look()
    assert jobs_in(queue) == [jobs[1].id]
    clock.now += 6
    reconciler.look()
    assert jobs[0].id in jobs_in(queue)


def test_only_the_one_with_the_claim_works_and_another_replaces_it_when_it_dies(
    reconciler, ledger, queue, clock, jobs
):
    other = Reconciler(ledger, queue, WORKER, owner="two", clock=clock)
    clock.now += 2
    assert reconciler.look() == 2
    clock.now += 2
    assert other.look() == 0
    clock.now += 16
    queue.take()
    assert other.look() == 2
    assert reconciler.look() == 0


def test_final_jobs_are_left_alone_and_waiting_ones_are_asked_in_their_time(
    reconciler, ledger, queue, clock, jobs
):
    ledger.request_cancel(jobs[0].id)
    for to in (JobState.PREPARING, JobState.RUNNING, JobState.CAPTURED, JobState.VERIFYING):
        ledger.move(ledger.acquire(jobs[1].id, "w", ttl_s=9).job, to, Change())
    ledger.move(ledger.acquire(jobs[1].id, "w", ttl_s=9).job, JobState.AWAITING_GPU, Change(after_s=60))
    clock.now += 30
    reconciler.look()
    assert jobs_in(queue) == []
    clock.now += 32
    reconciler.look()
    assert jobs_in(queue) == [jobs[1].id]


def test_orphans_are_looked_for_in_their_time_and_never_twice_in_the_queue(reconciler, queue, clock):
    reconciler.look()
    reconciler.look()
    clock.now += 31
    reconciler.look()
    assert queue.take().count(REAP) == 1
    clock.now += 31
    reconciler.look()
    assert queue.take().count(REAP) == 1


def test_a_queue_out_of_reach_marks_no_job_as_enqueued(ledger, clock, jobs):
    class Gone(MemoryQueue):
        def enqueue(self, job, after_s):
            raise BrokerUnavailable

    clock.now += 2
    with pytest.raises(BrokerUnavailable):
        Reconciler(ledger, Gone(), WORKER, owner="one", clock=clock).look()
    back = MemoryQueue()
    assert Reconciler(ledger, back, WORKER, owner="one", clock=clock).look() == 2

"""Lost Redis, stopped workers, double messages, offline cancels."""

import os
import signal
import time

import pytest

from farm.events import LeaseLost, Moved
from farm.job import JobState
from tests.integration.workers.farm_under_test import wait_until
from workers.app import open_queue
from workers.redis_link import RedisLink
from workers.scripted import Act, Block, Script

pytestmark = pytest.mark.redis

OPS = [f"op{n}" for n in range(20)]
RUNNING_LONG = Script(
    acts=(Act(to=JobState.PREPARING), Act(to=JobState.RUNNING), Act(to=JobState.CAPTURED, wait_s=3.0))
)


def states(farm):
    return {job.state for job in farm.ledger.jobs()}


def test_a_worker_killed_with_the_usual_times_is_replaced_within_60_s(make_farm):
    farm = make_farm(lease_s=15.0, reconcile_s=2.0, concurrency=1)
    farm.script("relu", Script(acts=(), block=Block(move=2, written=False)))
    (job,) = farm.submit(["relu"])
    farm.start_worker()
    wait_until(lambda: job.id in farm.blocked())
    farm.kill_worker()
    killed_at = time.time()
    farm.start_worker(ready=False)
    wait_until(lambda: not farm.standing(), limit_s=60)
    done = farm.ledger.job(job.id)
    assert done.state is JobState.ACCEPTED
    assert done.updated_at - killed_at < 60


def test_redis_killed_with_its_data_while_jobs_run_brings_all_to_their_end(make_farm):
    farm = make_farm()
    for op in OPS:
        farm.script(op, RUNNING_LONG)
    farm.start_worker()
    farm.submit(OPS)
    wait_until(lambda: JobState.RUNNING in states(farm))
    farm.kill_redis(remove_data=True)
    time.sleep(1.0)
    farm.start_redis()
    wait_until(lambda: not farm.standing(), limit_s=120)
    assert states(farm) == {JobState.ACCEPTED}


def test_twenty_jobs_whose_messages_were_lost_before_any_worker_came_reach_their_end(make_farm):
    farm = make_farm()
    farm.submit(OPS)
    farm.kill_redis(remove_data=True)
    farm.start_redis()
    farm.start_worker()
    wait_until(lambda: not farm.standing(), limit_s=120)
    assert states(farm) == {JobState.ACCEPTED}


def test_a_redis_that_comes_and_goes_five_times_does_not_make_the_worker_deaf(make_farm):
    farm = make_farm()
    for op in OPS:
        farm.script(op, RUNNING_LONG)
    farm.start_worker()
    farm.submit(OPS)
    for _ in range(5):
        farm.kill_redis(remove_data=False)
        time.sleep(1.0)
        farm.start_redis()
        time.sleep(1.0)
    wait_until(lambda: not farm.standing(), limit_s=120)
    farm.submit(["late"])
    wait_until(lambda: not farm.standing(), limit_s=30)
    assert states(farm) == {JobState.ACCEPTED}


def test_a_worker_stopped_past_its_lease_is_refused_when_it_continues(make_farm):
    farm = make_farm(concurrency=1)
    # The step ends and the worker stands right before its write, when it is stopped.
    farm.script("relu", Script(acts=(), block=Block(move=3, written=False)))
    (job,) = farm.submit(["relu"])
    stopped = farm.start_worker()
    wait_until(lambda: job.id in farm.blocked())
    fence = farm.ledger.job(job.id).fence
    os.killpg(stopped.pid, signal.SIGSTOP)
    farm.start_worker()
    wait_until(lambda: not farm.standing())
    done = farm.ledger.job(job.id)
    assert done.state is JobState.ACCEPTED
    before = farm.ledger.events(job=job.id)
    farm.let_go(job.id)
    os.killpg(stopped.pid, signal.SIGCONT)
    log = farm.places.log("worker")
    wait_until(lambda: f"fence {fence} in state captured is not valid any more" in log.read_text())
    assert farm.ledger.job(job.id) == done
    assert farm.ledger.events(job=job.id) == before
    assert [e.event.fence for e in before if isinstance(e.event, LeaseLost)] == [fence]


def test_a_second_message_for_a_leased_job_does_nothing(make_farm):
    farm = make_farm(concurrency=3)
    farm.script("relu", Script(acts=(), block=Block(move=1, written=False)))
    (job,) = farm.submit(["relu"])
    farm.start_worker()
    wait_until(lambda: job.id in farm.blocked())
    held = farm.ledger.job(job.id)
    calls = farm.calls(job.id)
    queue = open_queue(farm.settings)
    for _ in range(5):
        queue.enqueue(held, 0.0)
    wait_until(lambda: not queue.waiting())
    time.sleep(1.0)
    assert farm.calls(job.id) == calls
    assert farm.ledger.job(job.id) == held
    farm.let_go(job.id)
    wait_until(lambda: not farm.standing())
    numbers = [number for number, _ in farm.calls(job.id)]
    assert numbers == sorted(set(numbers))


def test_a_job_that_was_cancelled_without_workers_never_runs(make_farm):
    farm = make_farm()
    cancelled, other = farm.submit(["relu", "softmax"])
    assert farm.ledger.request_cancel(cancelled.id).state is JobState.CANCELLED
    farm.start_worker()
    wait_until(lambda: not farm.standing())
    assert farm.calls(cancelled.id) == []
    assert farm.effects(cancelled.id) == set()
    assert farm.ledger.job(other.id).state is JobState.ACCEPTED


def test_a_running_job_is_cancelled_at_its_next_poll(make_farm):
    farm = make_farm()
    farm.script(
        "relu",
        Script(
            acts=(
                Act(to=JobState.PREPARING),
                Act(to=JobState.RUNNING),
                Act(to=JobState.CAPTURED, wait_s=3600.0),
            )
        ),
    )
    (job,) = farm.submit(["relu"])
    farm.start_worker()
    wait_until(lambda: farm.ledger.job(job.id).state is JobState.RUNNING)
    farm.ledger.request_cancel(job.id)
    wait_until(lambda: not farm.standing(), limit_s=15)
    assert farm.ledger.job(job.id).state is JobState.CANCELLED
    assert "abandoned-2" in farm.effects(job.id)


@pytest.mark.long
def test_five_hundred_messages_leave_no_keys_behind(make_farm):
    farm = make_farm()
    link = RedisLink(farm.settings.broker.url)
    farm.start_worker()
    farm.submit(["first"])
    wait_until(lambda: not farm.standing())
    keys = link.key_count()
    farm.submit([f"op{n}" for n in range(84)])
    wait_until(lambda: not farm.standing(), limit_s=180)
    moved = [e for e in farm.ledger.events(limit=100_000) if isinstance(e.event, Moved)]
    assert len(moved) > 500
    wait_until(lambda: link.key_count() <= keys, limit_s=10)

import logging
from pathlib import Path

import pytest

from farm.errors import ConfigurationError, EngineUnavailable, LeakFound, NoSpace, StaleFence
from farm.fault import Fault
from farm.job import FINAL, TRANSITIONS, Accept, JobState, ParkReason
from farm.ledger import TRACE
from farm.pipeline.stage import ExecutorKind, Stage
from farm.settings import Limits, Settings, Worker
from workers.runtime import Runtime
from workers.spine import Advance, Failed, Park, Wait
from workers.tasks import TASKS, advance, task_name


class OneAnswer:
    """A spine whose steps all answer the same; a callable answer is called with the job and the lease."""

    def __init__(self, answer, executor=ExecutorKind.AGENT):
        self.answer = answer
        self.executor = executor
        self.abandoned = []
        self.forgotten = []

    def __call__(self, settings, ledger):
        return self

    def step(self, job, hold):
        return self.answer(job, hold) if callable(self.answer) else self.answer

    def abandon(self, job, failure):
        self.abandoned.append(failure)
        return {} if failure is None else {TRACE: "e" * 64}

    def forget(self, job):
        self.forgotten.append(job.state)

    def executors(self, job, attempt):
        return dict.fromkeys(Stage, self.executor)

    def reap(self, lookup):
        return 0


class Bench:
    """A job and the means to take its steps."""

    def __init__(self, state: Path, spine, **limits):
        self.spine = spine
        self.settings = Settings(
            state=state,
            toolchain=state,
            worker=Worker(lease_s=5.0, waiting_poll_s=0.01),
            limits=Limits(transient_backoff_s=0.0, **limits),
        )
        self.runtime = Runtime(self.settings, spine=spine, listeners=())
        self.ledger = self.runtime.ledger
        run = self.ledger.submit(
            recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=2, ops=["relu"]
        )
        self.id = f"{run.id}.relu"

    @property
    def job(self):
        return self.ledger.job(self.id)

    def go(self, *answers):
        for answer in answers:
            self.spine.answer = answer
            due = advance(self.runtime, self.id)
        return due


@pytest.fixture
def bench(tmp_path):
    made = []

    def make(answer=None, executor=ExecutorKind.AGENT, **limits):
        made.append(Bench(tmp_path / str(len(made)), OneAnswer(answer, executor), **limits))
        return made[-1]

    yield make
    for one in made:
        one.ledger.close()


CANNOT_FAIL = [s for s in JobState if s not in FINAL and JobState.FAILED not in TRANSITIONS[s]]
TO_RUNNING = (Advance(to=JobState.PREPARING), Advance(to=JobState.RUNNING))


def test_every_state_that_is_not_final_has_its_task():
    assert {task_name(state) for state in JobState if state not in FINAL} == TASKS
    for state in FINAL:
        with pytest.raises(ValueError, match=state):
            task_name(state)


def test_an_advance_is_written_and_the_next_step_is_due_at_once(bench):
    b = bench()
    due = b.go(Advance(to=JobState.PREPARING))
    assert (due.job, due.after_s) == (b.job, 0.0)
    assert (b.job.state, b.job.attempt, b.job.fence) == (JobState.PREPARING, 1, 1)


def test_a_wait_leaves_the_job_and_a_message_before_its_time_does_nothing(bench):
    b = bench()
    due = b.go(*TO_RUNNING, Wait(after_s=60.0))
    assert (due.job.state, due.after_s) == (JobState.RUNNING, 60.0)
    fence = b.job.fence
    assert b.go(Advance(to=JobState.CAPTURED)) is None
    assert (b.job.state, b.job.fence) == (JobState.RUNNING, fence)


def test_a_live_lease_of_another_worker_is_respected(bench):
    b = bench()
    b.ledger.acquire(b.id, "other", ttl_s=60)
    assert b.go(Advance(to=JobState.PREPARING)) is None
    assert b.job.state is JobState.QUEUED


def test_a_parked_job_waits_without_messages_and_returns_to_where_it_was(bench):
    b = bench()
    assert b.go(*TO_RUNNING, Park(reason=ParkReason.MODEL, summary="overloaded")) is None
    assert (b.job.state, b.job.park_reason, b.job.summary) == (
        JobState.PARKED,
        ParkReason.MODEL,
        "overloaded",
    )
    assert b.go(Park(reason=ParkReason.MODEL, summary="still")) is None
    assert b.job.state is JobState.PARKED
    due = b.go(Advance(to=JobState.RUNNING))
    assert due.job.state is b.job.state is JobState.RUNNING


@pytest.mark.parametrize(
    ("error", "reason"), [(EngineUnavailable(), ParkReason.ENGINE), (NoSpace(), ParkReason.DISK)]
)
def test_what_is_missing_outside_parks(bench, error, reason):
    def step(job, hold):
        raise error

    b = bench()
    b.go(*TO_RUNNING, step)
    assert (b.job.state, b.job.park_reason, b.job.summary) == (JobState.PARKED, reason, str(error))


def test_an_error_of_the_tree_fails_with_its_fault_and_leaves_a_trace(bench):
    def step(job, hold):
        raise LeakFound("the answer is in README.md")

    b = bench()
    assert b.go(Advance(to=JobState.PREPARING), step) is None
    assert (b.job.state, b.job.fault) == (JobState.FAILED, Fault.INTEGRITY)
    assert b.job.summary == "the answer is in README.md"
    (attempt,) = b.ledger.attempts(b.id)
    assert attempt.trace == "e" * 64
    assert [failure.fault for failure in b.spine.abandoned] == [Fault.INTEGRITY]


def test_a_defect_of_ours_is_retried_within_the_cap_and_then_fails(bench, caplog):
    def step(job, hold):
        raise ZeroDivisionError("division by zero")

    b = bench(transient_retries=2)
    for used in (1, 2):
        b.go(Advance(to=JobState.PREPARING), step)
        assert (b.job.state, b.job.transients, b.job.attempt) == (JobState.QUEUED, used, 1)
    b.go(Advance(to=JobState.PREPARING), step)
    assert (b.job.state, b.job.fault) == (JobState.FAILED, Fault.INFRA)
    assert b.job.summary == "ZeroDivisionError: division by zero"
    assert [r.exc_info for r in caplog.records if r.levelno == logging.ERROR]


def test_a_recipe_that_nobody_can_read_any_more_fails_the_job_with_its_own_words(bench):
    def step(job, hold):
        raise ConfigurationError("recipe.toml: layout.registry: it is empty")

    b = bench()
    b.spine.executors = lambda job, attempt: step(job, None)
    b.go(Advance(to=JobState.PREPARING), step)
    assert (b.job.state, b.job.summary) == (JobState.FAILED, "recipe.toml: layout.registry: it is empty")


def test_a_step_that_asks_for_what_the_table_lacks_fails_like_a_defect(bench):
    b = bench(transient_retries=0)
    b.go(*TO_RUNNING, Advance(to=JobState.ACCEPTED))
    assert (b.job.state, b.job.fault) == (JobState.FAILED, Fault.INFRA)
    assert "does not have" in b.job.summary


def test_a_failed_attempt_is_followed_by_one_more_when_it_has_new_inputs(bench):
    b = bench()
    b.go(*TO_RUNNING, Failed(fault=Fault.KERNEL, summary="wrong result"))
    assert (b.job.state, b.job.summary) == (JobState.QUEUED, "wrong result")
    b.go(*TO_RUNNING, Failed(fault=Fault.KERNEL, summary="wrong again"))
    assert (b.job.state, b.job.attempt, b.job.fault) == (JobState.FAILED, 2, Fault.KERNEL)
    assert [attempt.summary for attempt in b.ledger.attempts(b.id)] == ["wrong result", "wrong again"]


def test_programs_alone_get_no_second_attempt(bench):
    b = bench(executor=ExecutorKind.PROGRAM)
    b.go(*TO_RUNNING, Failed(fault=Fault.KERNEL, summary="wrong result"))
    assert (b.job.state, b.job.attempt, b.job.summary) == (JobState.FAILED, 1, "wrong result")
    assert len(b.ledger.attempts(b.id)) == 1


def test_a_spent_budget_parks_without_abandoning(bench):
    b = bench()
    b.go(*TO_RUNNING, Failed(fault=Fault.BUDGET, summary="no money"))
    assert (b.job.state, b.job.park_reason) == (JobState.PARKED, ParkReason.BUDGET)
    assert b.spine.abandoned == []


@pytest.mark.parametrize(
    "state", [s for s in JobState if s not in FINAL and JobState.FAILED not in TRANSITIONS[s]]
)
def test_a_failure_where_none_may_be_written_moves_the_job_to_where_it_may(bench, state):
    ways = {
        JobState.QUEUED: (),
        JobState.AWAITING_GPU: (
            *TO_RUNNING,
            *(Advance(to=to) for to in (JobState.CAPTURED, JobState.VERIFYING, JobState.AWAITING_GPU)),
        ),
        JobState.PARKED: (*TO_RUNNING, Park(reason=ParkReason.DISK, summary="full")),
    }
    b = bench()
    if ways[state]:
        b.go(*ways[state])
    assert b.job.state is state
    b.go(Failed(fault=Fault.ENV, summary="no compiler"))
    assert JobState.FAILED in TRANSITIONS[b.job.state]
    assert b.spine.abandoned == []


def test_a_wish_to_cancel_is_honoured_before_the_step(bench):
    b = bench()
    b.go(*TO_RUNNING, Wait(after_s=3600.0))
    b.ledger.request_cancel(b.id)

    def never(job, hold):
        raise AssertionError("the step was taken")

    assert b.go(never) is None
    assert b.job.state is JobState.CANCELLED
    assert b.spine.abandoned == [None]


def test_a_step_whose_lease_went_to_another_stops_before_its_push_and_writes_nothing(bench, caplog):
    def step(job, hold):
        b.ledger._clock = lambda: 4e9
        b.ledger.acquire(job.id, "other", ttl_s=60)
        with pytest.raises(StaleFence):
            hold.check()
        hold.check()

    b = bench()
    assert b.go(*TO_RUNNING, step) is None
    assert (b.job.state, b.job.fence) == (JobState.RUNNING, 4)
    assert "fence_stale" in [getattr(record, "action", None) for record in caplog.records]


def test_a_job_whose_worker_vanished_too_often_is_failed_with_a_trace(bench):
    b = bench(lost_leases=2)
    b.go(*TO_RUNNING)
    b.ledger.acquire(b.id, "dies", ttl_s=-1)
    assert b.go(Wait(after_s=0.0)) is not None
    for _ in range(2):
        b.ledger.acquire(b.id, "dies", ttl_s=-1)
    assert b.go(Wait(after_s=0.0)) is None
    assert (b.job.state, b.job.fault) == (JobState.FAILED, Fault.INFRA)
    assert "vanished 2 times" in b.job.summary
    assert b.ledger.attempts(b.id)[0].trace == "e" * 64


def test_a_job_that_kills_its_worker_even_while_it_is_cleaned_up_ends_without_that(bench):
    b = bench(lost_leases=2)
    b.go(*TO_RUNNING)
    for _ in range(3):
        b.ledger.acquire(b.id, "dies", ttl_s=-1)
    b.go(Wait(after_s=0.0))
    assert b.job.state is JobState.FAILED
    assert b.spine.abandoned == []


def test_a_listener_that_raises_does_not_concern_the_job(tmp_path, caplog):
    class Broken:
        def moving(self, job, to):
            raise RuntimeError("metrics are down")

        def moved(self, job, source):
            raise RuntimeError("metrics are down")

    b = Bench(tmp_path, OneAnswer(None))
    b.runtime = Runtime(b.settings, spine=b.spine, listeners=[lambda settings, ledger: Broken()])
    b.go(Advance(to=JobState.PREPARING))
    assert b.job.state is JobState.PREPARING
    assert [getattr(r, "action", None) for r in caplog.records].count("listener_failed") == 2
    b.runtime.ledger.close()
    b.ledger.close()


def test_a_final_failure_is_not_repeated_whatever_its_fault_allows(bench):
    b = bench(transient_retries=3)
    b.go(*TO_RUNNING, Failed(fault=Fault.INFRA, summary="the remote is read-only", final=True))
    assert (b.job.state, b.job.fault, b.job.transients) == (JobState.FAILED, Fault.INFRA, 0)


def test_what_a_job_keeps_on_the_host_goes_once_it_is_final(bench):
    b = bench(transient_retries=1)
    b.go(*TO_RUNNING, Failed(fault=Fault.INFRA, summary="once more"))
    assert b.spine.forgotten == []
    b.go(*TO_RUNNING, Failed(fault=Fault.UNSUPPORTED, summary="no"))
    assert b.spine.forgotten == [JobState.FAILED]

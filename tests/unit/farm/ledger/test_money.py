import sqlite3
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from farm.errors import UnknownJob
from farm.job import Accept, JobState
from farm.ledger import Answer, BudgetReached, Budgets, Change, Ledger, Reservation, Scope, Usage
from farm.pipeline.stage import Stage

DAY_S = 86_400.0


def usage(job, cost: int = 7, **changes) -> Usage:
    fields = {
        "request": "req_1",
        "run": job.run,
        "job": job.id,
        "op": job.op,
        "attempt": 1,
        "stage": Stage.B,
        "visit": 1,
        "step": 1,
        "model": "m",
        "at": 1_000_000.0,
        "input_tokens": 1,
        "cache_write_5m_tokens": 2,
        "cache_write_1h_tokens": 3,
        "cache_read_tokens": 4,
        "output_tokens": 5,
        "cost_micro_usd": cost,
        "prices": "2026-01-01",
    }
    return Usage(**fields | changes)


def test_a_model_call_is_counted_once(ledger, submit):
    (job,) = submit()
    ledger.add_usage(usage(job))
    ledger.add_usage(usage(job, cost=9))
    assert ledger.usage(job.id) == ledger.usage(run=job.run) == (usage(job),)
    assert ledger.usage(since=1_000_001.0) == ()


def at_work(ledger, job):
    for state in (JobState.PREPARING, JobState.RUNNING):
        ledger.move(ledger.acquire(job.id, "me", ttl_s=10.0).job, state, Change())


def test_a_token_names_its_job_until_it_is_revoked_and_is_stored_nowhere(ledger, submit, tmp_path):
    (job,) = submit()
    first, second = ledger.issue_token(job.id), ledger.issue_token(job.id)
    assert ledger.token_job(first) is None
    at_work(ledger, job)
    found = ledger.token_job(first)
    assert (found.job, found.run, found.op, found.attempt) == (job.id, job.run, job.op, 1)
    assert ledger.token_job(first[:-1]) is None
    dump = "\n".join(sqlite3.connect(tmp_path / "ledger.db").iterdump())
    assert first not in dump
    assert second not in dump
    ledger.revoke_tokens(job.id)
    assert ledger.token_job(first) is None
    assert ledger.token_job(second) is None
    with pytest.raises(UnknownJob):
        ledger.issue_token("nobody")


def test_the_token_of_a_job_whose_box_does_not_work_is_no_good(ledger, submit):
    going, gone = submit("relu", "gelu")
    tokens = {job.id: ledger.issue_token(job.id) for job in (going, gone)}
    at_work(ledger, going)
    at_work(ledger, gone)
    ledger.request_cancel(going.id)
    ledger.move(ledger.acquire(gone.id, "me", ttl_s=10.0).job, JobState.CAPTURED, Change())
    assert [ledger.token_job(token) for token in tokens.values()] == [None, None]


def test_an_answer_is_remembered_with_what_it_cost(ledger, submit):
    (job,) = submit()
    kept = ledger.reserve(job.id, 10, Budgets())
    ledger.settle(kept, usage(job), Answer(question="q", sha256="d", request="req_1"))
    assert ledger.answer("q") == Answer(question="q", sha256="d", request="req_1")
    ledger.settle(kept, usage(job), Answer(question="q", sha256="e", request="req_1"))
    assert ledger.answer("q").sha256 == "d"
    assert len(ledger.usage(job.id)) == 1


def test_a_job_that_was_short_can_go_on_when_that_very_call_fits(ledger, submit):
    (job,) = submit()
    assert ledger.affordable(job.id, Budgets(run=5))
    assert isinstance(ledger.reserve(job.id, 20, Budgets(run=10)), BudgetReached)
    assert ledger.has_budget(job.id, 1, Budgets(run=10))
    assert not ledger.affordable(job.id, Budgets(run=10))
    ledger.set_budget(job.run, 20)
    assert ledger.affordable(job.id, Budgets(run=10))


@pytest.mark.parametrize("scope", list(Scope))
def test_a_call_that_does_not_fit_names_the_budget(ledger, submit, scope):
    (job,) = submit()
    limits = Budgets(**{scope.value: 10})
    kept = ledger.reserve(job.id, 6, limits)
    assert isinstance(kept, Reservation)
    refused = ledger.reserve(job.id, 5, limits)
    assert refused == BudgetReached(scope=scope, limit=10, spent=0, reserved=6, fits_later=True)
    ledger.settle(kept, usage(job, cost=4))
    ledger.settle(kept, usage(job, cost=4))
    assert isinstance(ledger.reserve(job.id, 6, limits), Reservation)
    assert not ledger.has_budget(job.id, 1, limits)
    refused = ledger.reserve(job.id, 7, limits)
    assert not refused.fits_later
    assert refused.spent == 4


def test_the_runs_own_budget_goes_before_the_general_one(ledger):
    run = ledger.submit(
        recipe="r",
        repo="x",
        push_to=None,
        base="b",
        accept=Accept.MEASURED,
        attempts=1,
        ops=["a", "b"],
        budget_micro_usd=5,
    )
    assert ledger.run(run.id).budget_micro_usd == 5
    one, two = ledger.jobs(run=run.id)
    assert isinstance(ledger.reserve(one.id, 3, Budgets(run=100)), Reservation)
    assert ledger.reserve(two.id, 3, Budgets(run=100)).scope is Scope.RUN


def test_a_reservation_that_nobody_settles_ends(ledger, submit, clock):
    (job,) = submit()
    ledger.reserve(job.id, 10, Budgets(job=10), ttl_s=60.0)
    assert not ledger.has_budget(job.id, 1, Budgets(job=10))
    clock.now += 61
    assert ledger.has_budget(job.id, 10, Budgets(job=10))


def test_a_new_day_has_a_new_budget(ledger, submit, clock):
    (job,) = submit()
    kept = ledger.reserve(job.id, 10, Budgets(day=10))
    ledger.settle(kept, usage(job, cost=10))
    assert not ledger.has_budget(job.id, 1, Budgets(day=10))
    clock.now += DAY_S
    assert ledger.has_budget(job.id, 10, Budgets(day=10))


def test_the_first_answer_to_a_question_stays(ledger, submit):
    (job,) = submit()
    first = Answer(question="q", sha256="1" * 64, request="req_1")
    ledger.keep_answer(job.id, first)
    ledger.keep_answer(job.id, Answer(question="q", sha256="2" * 64, request="req_2"))
    assert ledger.answer("q") == first
    assert ledger.answer("other") is None


LIMITS = Budgets(job=1_000, run=2_500, day=3_000)


def spend(url: str, job_id: str, turns: int, tag: str) -> int:
    """Reserve 100 and spend 90 as often as it goes; how often it went."""
    ledger = Ledger(url)
    job = ledger.job(job_id)

    def once(turn: int) -> int:
        kept = ledger.reserve(job_id, 100, LIMITS)
        if isinstance(kept, BudgetReached):
            return 0
        open_now = sum(each.cost_micro_usd for each in ledger.usage(run=job.run))
        assert open_now <= 2_500
        ledger.settle(kept, usage(job, cost=90, request=f"{tag}-{turn}", at=ledger.job(job_id).updated_at))
        return 1

    with ThreadPoolExecutor(4) as pool:
        done = sum(pool.map(once, range(turns)))
    ledger.close()
    return done


def test_many_processes_and_threads_never_overspend_and_use_what_there_is(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = Ledger(url)
    run = ledger.submit(
        recipe="r",
        repo="x",
        push_to=None,
        base="b",
        accept=Accept.MEASURED,
        attempts=1,
        ops=["a", "b", "c"],
    )
    jobs = ledger.jobs(run=run.id)
    with ProcessPoolExecutor(4) as pool:
        running = [pool.submit(spend, url, jobs[n % 3].id, 15, str(n)) for n in range(6)]
        done = sum(each.result() for each in running)
    spent = {job.id: sum(each.cost_micro_usd for each in ledger.usage(job.id)) for job in jobs}
    assert sum(spent.values()) == 90 * done
    assert max(spent.values()) <= 1_000
    # What is left of the run's budget is less than a call's reservation.
    assert 2_400 < sum(spent.values()) <= 2_500
    ledger.close()

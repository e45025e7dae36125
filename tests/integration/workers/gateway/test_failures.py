"""When the API, Redis or the gateway itself fails: retried, parked, never lost."""

import hashlib
import json
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import pytest

from farm.ledger import Usage
from tests.integration.workers.gateway.conftest import KEY, MODEL, Bench, Make, beside, opening, until
from workers import processes
from workers.gateway.client import health, probe

pytestmark = pytest.mark.redis


def one(bench: Bench, **ask: Any) -> tuple[str, Any]:
    """A job's id and what one call of it comes to."""
    (job,) = bench.jobs("relu")
    try:
        return job.id, bench.ask(bench.ledger.issue_token(job.id), **ask)
    except anthropic.APIStatusError as error:
        return job.id, error


def parked(error: anthropic.APIStatusError) -> tuple[str | None, float]:
    return error.response.headers.get("x-farm-park"), float(error.response.headers.get("retry-after", "nan"))


@pytest.mark.parametrize(
    ("fault", "costs"),
    [
        ({"status": 429, "retry_after_s": 1}, 0),
        ({"status": 500}, 0),
        ({"status": 504}, 0),
        ({"status": 529, "times": 3}, 0),
        ({"cut_after": 0}, 0),
        ({"cut_after": 4}, 1),
        ({"error_after": 4}, 1),
        ({"error_after": 4, "error": "api_error"}, 1),
        ({"stall_after": 3, "stall_s": 60.0}, 1),
    ],
    ids=[
        "429",
        "500",
        "504",
        "529",
        "cut at once",
        "cut",
        "overloaded in a stream",
        "api error in one",
        "silence",
    ],
)
def test_each_passing_failure_is_tried_again_as_a_whole(make: Make, fault: dict[str, Any], costs: int) -> None:
    bench = make({"faults": [fault]}, silence_s=0.7)
    begun = time.monotonic()
    job, answer = one(bench)
    assert answer.content[0].text == "hello"
    times = fault.get("times", 1)
    assert len(bench.server.calls) == times + 1
    if "retry_after_s" in fault:
        assert bench.server.calls[1].at - bench.server.calls[0].at >= fault["retry_after_s"]
        assert time.monotonic() - begun >= fault["retry_after_s"]
    found = bench.ledger.usage(job)
    assert [usage.whole for usage in found] == [False] * costs + [True]
    # What broke off had been read, and is paid for as the answer itself was.
    assert {usage.input_tokens for usage in found} == {found[-1].input_tokens}


@pytest.mark.parametrize("fault", [{"status": 529}, {"status": 500}, {"cut_after": 2}], ids=["529", "500", "cut"])
def test_an_api_that_stays_down_parks_the_job_and_a_rested_one_answers_it(
    make: Make, fault: dict[str, Any]
) -> None:
    bench = make({"faults": [fault | {"for_s": 1.5}]}, patience_s=0.8, rest_s=1.0, backoff_s=0.1)
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    with pytest.raises(anthropic.APIStatusError) as caught:
        bench.ask(token)
    assert caught.value.status_code == 529
    assert parked(caught.value) == ("model", 1.0)
    asked = len(bench.server.calls)
    found = health(bench.place)
    assert found is not None
    assert not found.answers
    with pytest.raises(anthropic.APIStatusError) as again:  # nobody asks while it rests
        bench.ask(token)
    assert parked(again.value)[0] == "model"
    assert len(bench.server.calls) == asked
    time.sleep(1.2)
    assert bench.ask(token).content[0].text == "hello"
    usages = bench.ledger.usage(job.id)
    assert [usage.whole for usage in usages][-1]
    line = transcript(bench, job.id)[0]
    assert line["outcome"] == "parked"
    assert line["tries"]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"status": 401}, "refuses the farm's key"),
        ({"status": 402}, "payment"),
        ({"status": 429, "should_retry": False}, "429"),
    ],
)
def test_trouble_of_the_account_parks_at_once_and_never_looks_like_a_bad_token(
    make: Make, fault: dict[str, Any], says: str
) -> None:
    bench = make({"faults": [fault]}, rest_s=7.0)
    _, error = one(bench)
    assert parked(error) == ("model", 7.0)
    assert says in str(error)
    assert len(bench.server.calls) == 1


def test_a_pause_longer_than_anybody_waits_parks_at_once(make: Make) -> None:
    bench = make({"faults": [{"status": 429, "retry_after_s": 90}]}, patience_s=5.0)
    _, error = one(bench)
    reason, after_s = parked(error)
    assert (reason, round(after_s, -1)) == ("model", 90)
    assert len(bench.server.calls) == 1


@pytest.mark.parametrize("limit", ["job_usd", "day_usd"])
def test_limits_of_the_settings_park_for_budget_and_the_days_says_until_when(make: Make, limit: str) -> None:
    bench = make(**{limit: "0.0001"})
    _, error = one(bench)
    reason, after_s = parked(error)
    assert reason == "budget"
    assert (0 < after_s <= 86_400) == (limit == "day_usd")
    assert bench.server.calls == []


def waiting(bench: Bench, number: int) -> bool:
    """Whether so many calls are under way."""
    found = health(bench.place)
    return found is not None and found.active == number


def test_a_question_that_nobody_waits_for_or_whose_job_is_cancelled_is_not_begun(make: Make) -> None:
    bench = make({"delay_s": 1.5}, at_once=1)
    first, left, cancelled = bench.jobs("a", "b", "c")
    tokens = {job.op: bench.ledger.issue_token(job.id) for job in (first, left, cancelled)}

    def leave() -> Any:
        until(lambda: waiting(bench, 1))
        with bench.client(tokens["b"]).with_options(timeout=0.4) as sdk:
            headers = {"x-farm-stage": "B", "x-farm-visit": "1"}
            sdk.messages.create(
                model=MODEL, max_tokens=9, messages=opening("b"), stream=True, extra_headers=headers
            )

    def cancel() -> None:
        until(lambda: waiting(bench, 1))
        time.sleep(0.5)
        bench.ledger.request_cancel(cancelled.id)

    def ask_late() -> Any:
        until(lambda: waiting(bench, 1))
        return bench.ask(tokens["c"], op="c")

    found = beside(lambda: bench.ask(tokens["a"], op="a"), leave, ask_late, cancel)
    assert found[0].content[0].text == "hello"
    assert isinstance(found[1], anthropic.APITimeoutError)
    assert isinstance(found[2], anthropic.AuthenticationError)
    assert len(bench.server.calls) == 1


def test_an_address_where_no_api_is_parks_too(make: Make) -> None:
    bench = make(patience_s=0.3, url="http://127.0.0.1:9")
    _, error = one(bench)
    assert parked(error)[0] == "model"
    assert "cannot be reached" in str(error)


def test_sixteen_at_once_against_an_api_that_takes_four(make: Make) -> None:
    turns = [{"text": f"answer {number}"} for number in range(6)]
    scenario = {"simultaneous": 4, "delay_s": 0.15, "retry_after_s": 1, "visits": [{"turns": turns}]}
    bench = make(scenario, patience_s=60.0)
    ops = [f"op{number}" for number in range(16)]
    jobs = bench.jobs(*ops)

    def talk(job: Any) -> list[str]:
        token, said, messages = bench.ledger.issue_token(job.id), [], opening(job.op)
        for _ in turns:
            answer = bench.ask(token, messages)
            said.append(answer.content[0].text)
            more = [{"role": "assistant", "content": said[-1]}, {"role": "user", "content": "go on"}]
            messages = [*messages, *more]
        return said

    found = beside(*[partial(talk, job) for job in jobs])
    assert found == [[turn["text"] for turn in turns]] * 16
    refused = sum(call.status == 429 for call in bench.server.calls)
    assert refused >= 1  # it found the limit by itself
    assert refused <= 0.1 * len(bench.server.calls)
    assert max(call.active for call in bench.server.calls if call.status == 200) == 4
    usages = bench.ledger.usage()
    assert len(usages) == 16 * len(turns)
    assert all(usage.whole for usage in usages)


def cost(usages: tuple[Usage, ...]) -> int:
    return sum(usage.cost_micro_usd for usage in usages)


def test_a_budget_is_not_passed_by_more_than_a_call_and_a_raised_one_goes_on(make: Make) -> None:
    bench = make({"delay_s": 0.05, "visits": [{"turns": [{"text": "x" * 3000}]}]})
    budget = 5_000
    jobs = bench.jobs(*[f"op{number}" for number in range(16)], budget_micro_usd=budget)
    tokens = [bench.ledger.issue_token(job.id) for job in jobs]
    found = beside(*[partial(bench.ask, token, op=job.op) for job, token in zip(jobs, tokens, strict=True)])
    errors = [each for each in found if isinstance(each, Exception)]
    usages = bench.ledger.usage()
    dearest = max(usage.cost_micro_usd for usage in usages)
    assert 0 < len(errors) < 16
    assert {parked(error)[0] for error in errors} == {"budget"}
    assert all(error.status_code == 503 and "budget of the run" in str(error) for error in errors)
    assert budget - 2_000 < cost(usages) <= budget + dearest
    bench.ledger.set_budget(jobs[0].run, 100 * budget)
    for job, token, each in zip(jobs, tokens, found, strict=True):
        if isinstance(each, Exception):
            assert bench.ask(token, op=job.op).content[0].text
    assert len(bench.ledger.usage()) == 16


@pytest.mark.parametrize("data", [False, True], ids=["restarted", "lost"])
def test_redis_lost_in_the_middle_costs_no_answer(make: Make, data: bool) -> None:
    bench = make({"delay_s": 0.4})
    jobs = bench.jobs(*[f"op{number}" for number in range(6)])
    tokens = [bench.ledger.issue_token(job.id) for job in jobs]

    def lose() -> None:
        until(lambda: bench.server.calls)
        bench.kill_redis(data=data)
        time.sleep(0.5)
        bench.start_redis()

    asks = [partial(bench.ask, token, op=job.op) for job, token in zip(jobs, tokens, strict=True)]
    found = beside(lose, *asks)
    assert [answer.content[0].text for answer in found[1:]] == ["hello"] * 6
    assert len(bench.server.calls) == 6


def test_a_redis_that_stays_away_parks(make: Make) -> None:
    bench = make(patience_s=0.5)
    bench.kill_redis(data=False)
    _, error = one(bench)
    assert parked(error)[0] == "model"
    assert "Redis" in str(error)
    assert bench.server.calls == []


def test_a_gateway_told_to_stop_finishes_the_calls_under_way_and_keeps_them(make: Make) -> None:
    bench = make({"delay_s": 1.0})
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)

    def stop() -> None:
        until(lambda: bench.server.calls)
        bench.stop()

    _, answer = beside(stop, lambda: bench.ask(token))
    assert answer.content[0].text == "hello"
    bench.start()
    assert bench.ask(token).content[0].text == "hello"
    assert len(bench.server.calls) == 1


def test_a_killed_server_is_started_again_by_its_keeper_and_its_places_come_back(make: Make) -> None:
    bench = make({"delay_s": 0.3}, at_once=1)
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    keeper, server = bench.processes

    def kill() -> None:
        until(lambda: bench.server.calls)
        os.kill(server, signal.SIGKILL)

    _, broken = beside(kill, lambda: bench.ask(token))
    assert isinstance(broken, anthropic.APIConnectionError)
    until(lambda: health(bench.place) is not None)
    assert bench.processes[0] == keeper
    assert bench.processes[1] != server
    begun = time.monotonic()
    assert bench.ask(token).content[0].text == "hello"
    assert time.monotonic() - begun < 20.0  # the dead one's place is free once its lease is over


def test_a_server_whose_keeper_was_killed_ends(make: Make) -> None:
    bench = make()
    keeper, server = bench.processes
    os.kill(keeper, signal.SIGKILL)
    until(lambda: processes.identify(server) is None)


def test_one_tiny_call_says_whether_key_and_model_work(make: Make) -> None:
    bench = make({"visits": [{"turns": [{"text": "yes"}]}]})
    found = probe(bench.place, 10.0)
    assert found.works
    assert (found.model, found.why) == (MODEL, "")
    assert found.micro_usd > 0
    assert bench.server.calls[0].key_sha256 == hashlib.sha256(KEY.encode()).hexdigest()
    broken = make({"faults": [{"status": 401}]})
    assert "refuses the farm's key" in probe(broken.place, 10.0).why


def transcript(bench: Bench, job: str, attempt: int = 1) -> list[dict[str, Any]]:
    text = bench.place.transcript(job, attempt).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def test_the_key_is_in_no_file_and_no_other_process_and_tokens_are_in_no_transcript(make: Make) -> None:
    bench = make({"faults": [{"status": 529}, {"cut_after": 3}]})
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    more = f"\nI found {token} and sk-ant-api03-{'a' * 40} and ghp_{'b' * 36}"
    bench.ask(token, opening(more=more))
    bench.ask(token, opening(more=more))
    answered, replayed = transcript(bench, job.id)
    assert (answered["outcome"], replayed["outcome"]) == ("answered", "replayed")
    assert answered["answer"]["content"] == [{"type": "text", "text": "hello"}]
    assert answered["new"]["messages"][0]["content"].count("[redacted]") == 3
    assert bench.place.transcript(job.id, 1).stat().st_mode & 0o077 == 0
    own = set(bench.processes)
    bench.ledger.close()
    for path in Path(bench.settings.state).rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert KEY.encode() not in data, path
            assert token.encode() not in data or "artifacts" in path.parts, path
    holders = set()
    for folder in Path("/proc").glob("[0-9]*"):
        for name in ("environ", "cmdline"):
            try:
                if KEY.encode() in (folder / name).read_bytes():
                    holders.add(int(folder.name))
            except OSError:
                continue
    assert holders == own

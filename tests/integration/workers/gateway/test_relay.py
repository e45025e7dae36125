"""What goes through: bytes, refusals, replays. The SDK is the client, over the socket."""

import hashlib
import http.client
import json
import socket
from pathlib import Path
from typing import Any

import anthropic
import pytest

from drivers.scenarios import wire
from drivers.scenarios.scenario import Turn
from drivers.scenarios.tokens import PrefixCache
from farm.job import JobState, ParkReason
from tests.integration.workers.gateway.conftest import KEY, MODEL, Bench, Make, beside, opening, until

pytestmark = pytest.mark.redis


def raw(path: Path, token: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """A request by hand: status, headers, bytes."""
    connection = http.client.HTTPConnection("gateway", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    plain = {"x-api-key": token, "anthropic-version": "2023-06-01", "x-farm-stage": "B", "x-farm-visit": "1"}
    sent = plain | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", sent.pop("url", "/v1/messages"), body, sent)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, data


def question(**changes: Any) -> bytes:
    asked = {"model": MODEL, "max_tokens": 100, "stream": True, "messages": opening()} | changes
    return json.dumps({name: value for name, value in asked.items() if value is not None}).encode()


@pytest.fixture
def bench(make: Make) -> Bench:
    return make()


def test_the_bytes_that_the_api_sends_are_the_bytes_that_the_box_gets(make: Make) -> None:
    turn = {
        "thinking": "hm \u2028 ü",
        "text": 'a "quoted" line\nand \\ more \U0001f980 ' * 50,
        "tools": [{"name": "bash", "input": {"command": "ls \u0000"}}],
    }
    bench = make({"visits": [{"turns": [turn]}]})
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    body = question()
    status, headers, got = raw(bench.place.socket, token, body)
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    counted = PrefixCache(minimum_tokens=1024).count(json.loads(body), 0.0)
    played = Turn.model_validate(turn)
    whole = wire.answer(played, number=1, model=MODEL, counted=counted, max_tokens=100)
    assert got == b"".join(wire.events(whole))
    (call,) = bench.server.calls
    assert call.bytes == len(body)
    assert call.sha256 == hashlib.sha256(body).hexdigest()
    assert call.key_sha256 == hashlib.sha256(KEY.encode()).hexdigest()


def test_a_question_that_was_paid_for_is_answered_at_no_cost(bench: Bench) -> None:
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    first = raw(bench.place.socket, token, question())
    bench.kill()
    bench.stop()
    bench.start()
    again = raw(bench.place.socket, bench.ledger.issue_token(job.id), question())
    assert again[2] == first[2]
    assert (first[1].get("x-farm-replayed"), again[1]["x-farm-replayed"]) == (None, "1")
    assert first[1]["request-id"] == again[1]["request-id"]
    assert len(bench.server.calls) == 1
    (usage,) = bench.ledger.usage(job.id)
    assert usage.whole
    assert (usage.stage.value, usage.visit, usage.step, usage.model) == ("B", 1, 1, MODEL)
    assert usage.cost_micro_usd > 0


def test_another_job_or_another_byte_is_another_question(bench: Bench) -> None:
    one, two = bench.jobs("relu", "gelu")
    for job in (one, two):
        assert bench.ask(bench.ledger.issue_token(job.id)).content[0].text == "hello"
    bench.ask(bench.ledger.issue_token(one.id), opening(more=" "))
    assert len(bench.server.calls) == 3


def test_a_box_that_goes_away_in_a_call_finds_its_answer_when_it_comes_back(make: Make) -> None:
    bench = make({"delay_s": 1.0})
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    left = http.client.HTTPConnection("gateway", timeout=0.5)
    left.sock = socket.socket(socket.AF_UNIX)
    left.sock.settimeout(0.5)
    left.sock.connect(str(bench.place.socket))
    headers = {"x-api-key": token, "anthropic-version": "2023-06-01", "x-farm-stage": "B", "x-farm-visit": "1"}
    left.request("POST", "/v1/messages", question(), headers)
    with pytest.raises(TimeoutError):
        left.getresponse()
    left.close()
    until(lambda: bench.ledger.usage(job.id))
    assert raw(bench.place.socket, token, question())[1]["x-farm-replayed"] == "1"
    assert len(bench.server.calls) == 1


def test_a_question_under_way_is_joined_not_bought_twice(make: Make) -> None:
    bench = make({"delay_s": 0.5})
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    answers = beside(*[lambda: raw(bench.place.socket, token, question())] * 4)
    assert len({data for _, _, data in answers}) == 1
    assert len(bench.server.calls) == 1


@pytest.mark.parametrize("ending", ["revoked", "cancelled", "captured", "parked", "unknown"])
def test_who_may_not_ask_any_more_is_told_401_and_nothing_is_asked(bench: Bench, ending: str) -> None:
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    match ending:
        case "revoked":
            bench.ledger.revoke_tokens(job.id)
        case "cancelled":
            bench.ledger.request_cancel(job.id)
        case "captured":
            bench.move(job, JobState.CAPTURED)
        case "parked":
            bench.move(job, JobState.PARKED, park_reason=ParkReason.DISK)
        case _:
            token = "farm-nobody"
    with pytest.raises(anthropic.AuthenticationError):
        bench.ask(token)
    assert bench.server.calls == []


def test_what_is_not_allowed_is_refused_before_it_costs(bench: Bench) -> None:
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    refused = raw(bench.place.socket, token, question(model="claude-someone-else"))
    assert (refused[0], json.loads(refused[2])["error"]["type"]) == (403, "permission_error")
    assert raw(bench.place.socket, token, question(max_tokens=32_001))[0] == 400
    for path in ("/v1/messages/count_tokens", "/v1/messages?beta=true", "/"):
        assert raw(bench.place.socket, token, question(), url=path)[0] == 404
    with pytest.raises(anthropic.PermissionDeniedError, match="beta"):
        bench.ask(token, headers={"anthropic-beta": "context-1m-2025-08-07"})
    assert bench.server.calls == []
    assert bench.ledger.usage() == ()


def test_json_that_two_readers_read_differently_and_requests_that_are_too_large_are_refused(make: Make) -> None:
    bench = make()
    (job,) = bench.jobs("relu")
    token = bench.ledger.issue_token(job.id)
    twice = question().replace(b"{", b'{"model": "claude-opus-5-5", ', 1)
    for body in (twice, b"[1]", b"{", question().decode().encode("utf-16"), b'{"a":' * 100_000):
        assert raw(bench.place.socket, token, body)[0] == 400
    large = question(messages=[{"role": "user", "content": "x" * (9 << 20)}])
    try:
        status = raw(bench.place.socket, token, large)[0]
    except (BrokenPipeError, ConnectionResetError):  # it does not read on what it will not take
        status = 413
    assert status == 413
    assert bench.server.calls == []


def test_the_apis_own_refusal_is_passed_on_at_once(make: Make) -> None:
    bench = make({"faults": [{"status": 400}]})
    (job,) = bench.jobs("relu")
    with pytest.raises(anthropic.BadRequestError, match="The scenario answers"):
        bench.ask(bench.ledger.issue_token(job.id))
    assert len(bench.server.calls) == 1

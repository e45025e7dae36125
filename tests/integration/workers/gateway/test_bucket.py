"""The bucket's script on a real Redis."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from farm.errors import BrokerUnavailable
from farm.settings import Gateway
from workers.gateway.bucket import Busy, RateBucket, State, Taken, Used
from workers.gateway.outcome import Strain

pytestmark = pytest.mark.redis

WIDE = {"requests_per_minute": 10**6, "input_tokens_per_minute": 10**9, "output_tokens_per_minute": 10**9}
NOTHING = Used(input=0, output=0)


class Bench:
    def __init__(self, socket: Path) -> None:
        self.client = redis.Redis(unix_socket_path=str(socket))
        self.client.flushall()
        self._url = f"redis+socket://{socket}"
        self._number = 0

    def bucket(self, **settings: Any) -> RateBucket:
        return RateBucket(self._url, Gateway.model_validate(WIDE | settings))

    def set(self, **values: float) -> None:
        self.client.hset("tilefarm:gateway:bucket", mapping=values)  # type: ignore[arg-type] # the stub is too narrow

    def get(self, name: str) -> float:
        found = self.client.hget("tilefarm:gateway:bucket", name)
        assert isinstance(found, bytes)
        return float(found)

    def take(self, bucket: RateBucket, tokens: int = 1, most: int = 1) -> Taken | Busy:
        self._number += 1
        return bucket.take(f"c{self._number}", input_tokens=tokens, max_tokens=most)


@pytest.fixture
def bench(redis_socket: Path) -> Iterator[Bench]:
    made = Bench(redis_socket)
    yield made
    made.client.close()


def taken(found: Taken | Busy) -> Taken:
    assert isinstance(found, Taken), found
    return found


def busy(found: Taken | Busy) -> str:
    assert isinstance(found, Busy), found
    return found.why


def test_a_new_bucket_begins_with_one_call_and_adds_one_a_round(bench: Bench) -> None:
    bucket = bench.bucket()
    first = taken(bench.take(bucket))
    assert busy(bench.take(bucket)) == "calls"
    assert bucket.done(first, Strain.FINE, NOTHING).limit == 2
    for limit in range(2, 6):
        for call in [taken(bench.take(bucket)) for _ in range(limit)]:
            found = bucket.done(call, Strain.FINE, NOTHING)
            # Only calls that filled their limit say that it may grow.
            assert found.limit in (limit, limit + 1)
        bench.set(limit=limit + 1)


def test_a_refusal_halves_pauses_and_is_remembered(bench: Bench) -> None:
    bucket = bench.bucket(backoff_s=0.01, backoff_most_s=0.01)
    bench.take(bucket)
    bench.set(limit=5)
    calls = [taken(bench.take(bucket)) for _ in range(4)]
    found = bucket.done(calls.pop(), Strain.LIMITED, NOTHING, retry_after_s=30.0)
    assert (found.limit, round(found.pause_s)) == (2, 30)
    assert busy(bench.take(bucket)) == "pause"
    # Calls that began before the cut say nothing new.
    assert bucket.done(calls.pop(), Strain.LIMITED, NOTHING).limit == 2
    assert bench.get("ceiling") == 4
    bench.set(pause_until=0, limit=4)
    while not isinstance(bench.take(bucket), Busy):
        pass
    full = bucket.look()
    assert (full.active, full.limit) == (4, 4)


def test_beyond_what_was_refused_it_goes_only_after_many_answers(bench: Bench) -> None:
    bucket = bench.bucket()
    bench.take(bucket)
    bench.set(limit=1, ceiling=1)
    bench.client.delete("tilefarm:gateway:calls")
    limits = [bucket.done(taken(bench.take(bucket)), Strain.FINE, NOTHING).limit for _ in range(40)]
    assert limits == [1] * 39 + [2]


@pytest.mark.parametrize("rate", ["requests", "input", "output"])
def test_each_rate_is_kept_and_a_request_larger_than_a_minute_goes_when_there_is_a_minute(
    bench: Bench, rate: str
) -> None:
    name = {"requests": "requests_per_minute"}.get(rate, f"{rate}_tokens_per_minute")
    bucket = bench.bucket(**{name: 60})
    bench.take(bucket)
    bench.set(limit=9, mean_output=10, **{rate: 0.5})
    found = bench.take(bucket, tokens=10, most=10)
    assert busy(found) == rate
    assert isinstance(found, Busy)
    assert found.wait_s == pytest.approx(0.5 if rate == "requests" else 9.5, abs=0.3)
    bench.set(**{rate: 60})
    large = taken(bench.take(bucket, tokens=1000, most=1000))
    assert isinstance(bench.take(bucket, tokens=1000, most=1000), Busy) == (rate == "input")
    bucket.done(large, Strain.FINE, Used(input=5, output=500))
    if rate == "input":
        assert bench.get("input") == pytest.approx(55, abs=1)
    if rate == "output":
        assert bench.get("output") < -400  # what was said beyond is owed


def test_what_dies_gives_its_place_back_and_what_lives_keeps_it(bench: Bench) -> None:
    bucket = bench.bucket()
    call = taken(bench.take(bucket))
    bench.client.zadd("tilefarm:gateway:calls", {call.id: 1.0})  # its time is over
    other = taken(bench.take(bucket))
    bench.client.delete("tilefarm:gateway:calls")  # Redis lost it
    bucket.renew([other.id])
    assert bucket.look().active == 1
    assert busy(bench.take(bucket)) == "calls"
    bucket.give_back(other)
    assert bucket.look().active == 0


def test_a_lost_bucket_is_made_anew_nearly_empty(bench: Bench) -> None:
    bucket = bench.bucket(requests_per_minute=50, at_once=8)
    bench.take(bucket)
    bench.set(limit=8, requests=50)
    bench.client.flushall()
    bench.client.script_flush()
    assert bucket.look() == State(active=0, limit=1, failing_s=0.0, pause_s=0.0, rest_s=0.0)
    assert bench.get("requests") == pytest.approx(5, abs=0.5)


def test_a_rest_is_told_to_everybody_and_then_one_asks(bench: Bench) -> None:
    bucket, other = bench.bucket(), bench.bucket()
    call = taken(bench.take(bucket))
    bench.set(limit=6)
    bucket.done(call, Strain.OVERLOADED, NOTHING)
    assert other.look().failing_s >= 0
    other.rest(20.0)
    assert busy(bench.take(bucket)) == "rest"
    bench.set(rest_until=1.0, pause_until=0.0)
    taken(bench.take(bucket))
    assert busy(bench.take(other)) == "calls"
    assert other.look().failing_s == 0.0


def test_a_redis_that_is_away_is_named(tmp_path: Path) -> None:
    bucket = RateBucket(f"redis+socket://{tmp_path}/none", Gateway())
    with pytest.raises(BrokerUnavailable, match="does not answer"):
        bucket.look()

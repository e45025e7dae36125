"""A gateway as its own process, a real Redis, a model server; jobs whose boxes are taken to work."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from drivers import redis_server
from drivers.embedded import connected
from drivers.places import places
from drivers.scenarios.modelserver import ModelServer, serving
from drivers.scenarios.scenario import Scenario
from farm.job import Accept, Job, JobState
from farm.ledger import Change, Ledger
from farm.settings import Gateway, Settings, inherited
from workers import processes
from workers.gateway import host
from workers.gateway.place import gateway_place

KEY = "sk-ant-api03-canary-0123456789abcdefghijklmnop"
MODEL = "claude-haiku-5-5"
FACTS = "| fact | value |\n|---|---|\n| stage | B |\n| visit | 1 |\n| attempt | 1 |\n| op | {op} |\n"
QUICK: dict[str, Any] = {
    "requests_per_minute": 100_000,
    "input_tokens_per_minute": 100_000_000,
    "output_tokens_per_minute": 100_000_000,
    "backoff_s": 0.05,
    "backoff_most_s": 0.2,
    "patience_s": 20.0,
    "silence_s": 5.0,
    "rest_s": 2.0,
}


class Bench:
    """One farm's gateway and what it talks to."""

    def __init__(self, state: Path, server: ModelServer, **gateway: Any) -> None:
        self.server = server
        given = Gateway.model_validate(QUICK | gateway)
        self.settings = connected(Settings(state=state, toolchain=state, gateway=given))
        self.places = places(state)
        self.place = gateway_place(state)
        self.ledger = Ledger(self.settings.ledger_url)
        redis_server.ensure(self.places, None)
        self.start()

    def start(self) -> None:
        host.ensure(self.settings, inherited() | {"ANTHROPIC_API_KEY": KEY})

    def stop(self) -> bool:
        return host.stop(self.settings)

    @property
    def processes(self) -> list[int]:
        """The keeper and its server."""
        keeper = host.pid(self.settings)
        assert keeper is not None
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        return [keeper, *map(int, children)]

    def kill(self) -> None:
        """SIGKILL to keeper and server."""
        found = self.processes
        for each in found:
            os.kill(each, signal.SIGKILL)
        until(lambda: not any(processes.identify(each) for each in found))

    def kill_redis(self, *, data: bool) -> None:
        running = processes.recorded(self.places.redis_pid)
        assert running is not None
        os.kill(running.pid, signal.SIGKILL)
        until(lambda: not processes.alive(running))
        if data:
            shutil.rmtree(self.places.redis_data)

    def start_redis(self) -> None:
        redis_server.ensure(self.places, None)

    def jobs(self, *ops: str, budget_micro_usd: int | None = None) -> tuple[Job, ...]:
        """Jobs in RUNNING."""
        run = self.ledger.submit(
            recipe="r",
            repo="x",
            push_to=None,
            base="b",
            accept=Accept.MEASURED,
            attempts=2,
            ops=ops,
            budget_micro_usd=budget_micro_usd,
        )
        for job in self.ledger.jobs(run=run.id):
            self.move(job, JobState.PREPARING)
            self.move(job, JobState.RUNNING)
        return self.ledger.jobs(run=run.id)

    def move(self, job: Job, to: JobState, **change: Any) -> None:
        grant = self.ledger.acquire(job.id, "test", ttl_s=10.0)
        assert grant is not None
        self.ledger.move(grant.job, to, Change(**change))

    def client(self, token: str) -> anthropic.Anthropic:
        """The SDK, unchanged, as a box has it."""
        http = httpx2.Client(transport=httpx2.HTTPTransport(uds=str(self.place.socket)), timeout=60.0)
        return anthropic.Anthropic(base_url="http://gateway", api_key=token, max_retries=0, http_client=http)

    def ask(self, token: str, talk: list[Any] | None = None, *, op: str = "relu", **more: Any) -> Any:
        """One call of stage B's first visit; the final message, or the SDK's error."""
        headers = {"x-farm-stage": "B", "x-farm-visit": "1", "x-farm-repair": "0"} | more.pop("headers", {})
        asked: dict[str, Any] = {"model": MODEL, "max_tokens": 1000, "messages": talk or opening(op)}
        with self.client(token) as sdk, sdk.messages.stream(**asked | more, extra_headers=headers) as stream:
            return stream.get_final_message()

    def close(self) -> None:
        self.stop()
        redis_server.stop(self.places, grace_s=5.0)
        self.ledger.close()


def opening(op: str = "relu", more: str = "") -> list[dict[str, Any]]:
    return [{"role": "user", "content": FACTS.format(op=op) + more}]


def until(condition: Callable[[], Any], limit_s: float = 30.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s"
        time.sleep(0.02)


def beside(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls return or raise, run at once."""
    found: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        try:
            found[number] = calls[number]()
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


Make = Callable[..., Bench]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Benches: `make(scenario fields, gateway settings)`; the scenario's visits default to one short answer."""
    opened: list[Any] = []
    benches: list[Bench] = []

    def made(scenario: dict[str, Any] | None = None, **gateway: Any) -> Bench:
        plain = {"name": "test", "visits": [{"turns": [{"text": "hello"}], "last_repeats": True}]}
        context = serving(Scenario.model_validate(plain | (scenario or {})))
        url, server = context.__enter__()
        opened.append(context)
        benches.append(Bench(tmp_path / f"state{len(benches)}", server, **({"url": url} | gateway)))
        return benches[-1]

    yield made
    for bench in benches:
        bench.close()
    for context in opened:
        context.__exit__(None, None, None)

"""A server that speaks the Messages API and plays a scenario: `python -m drivers.scenarios.modelserver SCENARIO`.

It listens on 127.0.0.1 and answers `POST /v1/messages` alone. What it saw is in `calls`, and, where a file is
given, in JSONL: no keys, but their digests.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from drivers.scenarios import scenario as scenarios
from drivers.scenarios import wire
from drivers.scenarios.scenario import Fault, Scenario, Turn
from drivers.scenarios.tokens import PrefixCache
from farm.errors import ConfigurationError, FarmError

#: Largest request that the API takes, bytes.
LARGEST = 32 << 20


@dataclass(kw_only=True)
class Call:
    """What the server saw of one request and did about it."""

    number: int  #: from 1, in order of arrival
    at: float  #: seconds since the epoch
    bytes: int  #: length of the body
    sha256: str  #: digest of the body
    key_sha256: str  #: digest of the key
    key_in_body: bool  #: the key is in the body as well, where it must never be
    headers: tuple[str, ...]  #: names of its headers, lower case
    facts: dict[str, str] = field(default_factory=dict)  #: stage, visit, attempt, op
    turn: int = 0  #: number of assistant messages in it
    status: int = 0  #: what was answered; 0: the client left first
    said: str = ""  #: why it was refused
    fault: str | None = None  #: what went wrong on purpose: `cut_after 3`, `status 529`, `simultaneous`
    usage: dict[str, Any] = field(default_factory=dict)  #: as reported; empty where no answer began
    active: int = 0  #: requests that ran at once, with this one
    seconds: float = 0.0  #: how long it took


class ModelServer:
    """Plays one scenario. Used within one event loop; `serving` runs it beside a synchronous program."""

    def __init__(self, scenario: Scenario, *, record: Path | None = None) -> None:
        """`record`: where each call is appended as a line of JSON once it has ended."""
        self.calls: list[Call] = []
        self.bodies: list[bytes] = []  #: of the calls, in their order
        self._scenario = scenario
        self._record = record
        self._cache = PrefixCache(minimum_tokens=scenario.cache_minimum_tokens)
        self._used: Counter[tuple[str, ...]] = Counter()
        self._until: dict[tuple[str, ...], float] = {}
        self._active = 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> str:
        """Listen; the URL for the SDK's `base_url`."""
        app = web.Application(client_max_size=LARGEST + 1)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        begun = time.monotonic()
        key = _key(request)
        call = Call(
            number=len(self.calls) + 1,
            at=time.time(),
            bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            key_sha256=hashlib.sha256(key).hexdigest(),
            key_in_body=bool(key) and key in body,
            headers=tuple(sorted(name.lower() for name in request.headers)),
        )
        self.calls.append(call)
        self.bodies.append(body)
        self._active += 1
        call.active = self._active
        try:
            return await self._answer(request, body, call)
        finally:
            self._active -= 1
            call.seconds = round(time.monotonic() - begun, 4)
            if self._record is not None:
                with self._record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(call)) + "\n")

    async def _answer(self, request: web.Request, body: bytes, call: Call) -> web.StreamResponse:
        if request.method != "POST" or request.path != "/v1/messages":
            return _refused(call, 404, f"Not found: {request.method} {request.path}")
        if not request.headers.get("x-api-key") and not request.headers.get("authorization"):
            return _refused(call, 401, "x-api-key header is required")
        if "anthropic-version" not in request.headers:
            return _refused(call, 400, "anthropic-version: header is required")
        if len(body) > LARGEST:
            return _refused(call, 413, "Request exceeds the maximum size")
        if self._scenario.simultaneous is not None and self._active > self._scenario.simultaneous:
            call.fault = "simultaneous"
            return _refused(call, 429, "Too many requests at once", retry_after_s=self._scenario.retry_after_s)
        try:
            asked: dict[str, Any] = json.loads(body)
        except ValueError:
            return _refused(call, 400, "The request body is not valid JSON")
        problem = wire.refusal(asked)
        if problem is not None:
            return _refused(call, 400, problem)
        facts = scenarios.facts_of(_first_text(asked))
        call.facts = {name: facts[name] for name in ("stage", "visit", "attempt", "op") if name in facts}
        call.turn = sum(1 for message in asked["messages"] if message["role"] == "assistant")
        fault = self._fault((), self._scenario.faults)
        if fault is None or fault.status is None:
            try:
                turn, place = self._turn(facts, call.turn)
            except FarmError as error:
                return _refused(call, 400, str(error))
            key = (facts.get("op", ""), facts.get("attempt", ""), *place)
            fault = fault or self._fault(key, turn.faults)
            if fault is None or fault.status is None:
                return await self._play(request, asked, turn, fault, call)
        call.fault = f"status {fault.status}"
        await asyncio.sleep(fault.delay_s)
        return _refused(
            call,
            fault.status or 500,
            "Overloaded" if fault.status == 529 else "The scenario answers with this error",
            retry_after_s=fault.retry_after_s,
            should_retry=fault.should_retry,
        )

    def _turn(self, facts: Mapping[str, str], number: int) -> tuple[Turn, tuple[str, ...]]:
        """The turn that is due, filled in, and its place in the scenario. Raises ConfigurationError."""
        visit = self._scenario.visit(facts)
        if visit is None:
            raise ConfigurationError(f"scenario {self._scenario.name} has no visit for {dict(facts)}")
        if number >= len(visit.turns) and not visit.last_repeats:
            raise ConfigurationError(
                f"scenario {self._scenario.name} has {len(visit.turns)} turn(s) for stage {visit.stage}, "
                f"visit {visit.visit}; a request asks for turn {number + 1}"
            )
        number = min(number, len(visit.turns) - 1)
        turn = visit.turns[number]
        folder = self._scenario.folder
        tools = tuple(
            tool.model_copy(update={"input": scenarios.filled(tool.input, facts, folder)}) for tool in turn.tools
        )
        whole = turn.model_copy(
            update={
                "text": scenarios.filled(turn.text, facts, folder),
                "thinking": scenarios.filled(turn.thinking, facts, folder),
                "tools": tools,
            }
        )
        return whole, (str(self._scenario.visits.index(visit)), str(number))

    def _fault(self, key: tuple[str, ...], faults: tuple[Fault, ...]) -> Fault | None:
        """The next fault that is not used up, which uses it once."""
        now = time.monotonic()
        for place, fault in enumerate(faults):
            each = (*key, str(place))
            if fault.for_s is not None:
                if now < self._until.setdefault(each, now + fault.for_s):
                    return fault
            elif self._used[each] < fault.times:
                self._used[each] += 1
                return fault
        return None

    async def _play(
        self, request: web.Request, asked: dict[str, Any], turn: Turn, fault: Fault | None, call: Call
    ) -> web.StreamResponse:
        await asyncio.sleep(self._scenario.delay_s + turn.delay_s + (fault.delay_s if fault else 0.0))
        counted = self._cache.count(asked, time.time())
        whole = wire.answer(
            turn, number=call.number, model=asked["model"], counted=counted, max_tokens=asked["max_tokens"]
        )
        call.usage = whole.usage
        call.status = 200
        headers = {"request-id": _request_id(call)}
        if not asked.get("stream"):
            body = wire.message(whole)
            return web.Response(body=body, content_type="application/json", headers=headers)
        response = web.StreamResponse(headers=headers | {"cache-control": "no-cache"})
        response.content_type = "text/event-stream"
        response.charset = "utf-8"
        await response.prepare(request)
        pause_s = self._scenario.token_delay_s + turn.token_delay_s
        for number, event in enumerate(wire.events(whole)):
            if fault is not None and fault.cut_after == number:
                call.fault = f"cut_after {number}"
                _cut(request)
                return response
            if fault is not None and fault.error_after == number:
                call.fault = f"error_after {number}"
                await response.write(wire.error_event(fault.error))
                return response
            if fault is not None and fault.stall_after == number:
                call.fault = f"stall_after {number}"
                await asyncio.sleep(fault.stall_s)
            await response.write(event)
            if pause_s:
                await asyncio.sleep(pause_s)
        await response.write_eof()
        return response


@contextmanager
def serving(scenario: Scenario, *, record: Path | None = None, port: int = 0) -> Iterator[tuple[str, ModelServer]]:
    """The URL of a server that plays the scenario beside this program, and the server."""
    server = ModelServer(scenario, record=record)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="modelserver", daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(port), loop).result(10.0), server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10.0)
        loop.close()


def _key(request: web.Request) -> bytes:
    """The key, in whichever of its two headers it comes."""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return (request.headers.get("x-api-key") or bearer).encode()


def _first_text(asked: Mapping[str, Any]) -> str:
    content = asked["messages"][0]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if block.get("type") == "text")


def _refused(
    call: Call, status: int, message: str, *, retry_after_s: int | None = None, should_retry: bool | None = None
) -> web.Response:
    call.status, call.said = status, message
    headers = {"request-id": _request_id(call)}
    if retry_after_s is not None:
        headers["retry-after"] = str(retry_after_s)
    if should_retry is not None:
        headers["x-should-retry"] = str(should_retry).lower()
    body = wire.error_body(status, message, _request_id(call))
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def _request_id(call: Call) -> str:
    return f"req_{call.number:06d}"


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _serve(arguments: argparse.Namespace) -> None:
    server = ModelServer(scenarios.load(arguments.scenario), record=arguments.record)
    print(await server.start(arguments.port), flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()


def main(argv: list[str]) -> int:
    """Serve until interrupted; the URL is the first line of the output."""
    parser = argparse.ArgumentParser(prog="modelserver", description="Plays a scenario as the Messages API.")
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--record", type=Path, help="file that gets a line of JSON for each call")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args(argv)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

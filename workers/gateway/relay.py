"""One question of a box, from its bytes to the bytes of its answer.

A question is asked upstream once, whoever waits for it and however often it comes: an answer is kept before it is
handed on, and a question under way is joined. A box that goes away changes nothing for a call that is being paid
for; one that nobody waits for any more is not begun.
"""

import asyncio
import hashlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from farm.errors import BrokerUnavailable
from farm.ledger import BudgetReached, JobRef, Scope
from farm.models import Tokens
from farm.settings import Gateway
from workers.gateway import reply as replies
from workers.gateway.books import Books
from workers.gateway.bucket import LEASE_S, Busy, RateBucket, State, Taken, Used
from workers.gateway.outcome import Heard, Next, Outcome, Strain, classify
from workers.gateway.reply import Reply
from workers.gateway.request import Asked
from workers.gateway.upstream import Upstream

T = TypeVar("T")
#: Longest pause between two looks at a bucket or a budget that may have room by now, seconds.
LOOK_S = 0.25
#: Bytes of a request that count as one token of the rate; what it really was is corrected afterwards.
_BYTES_PER_TOKEN = 4


class Gone(Exception):
    """Nobody waits for the answer any more, or the gateway stops: the question is dropped before it costs."""


@dataclass(kw_only=True)
class _Flight:
    """A question under way."""

    waiting: int = 0
    token: str = ""  # of who asked last: a box that came later has another one
    task: "asyncio.Task[Reply] | None" = None
    tries: list[str] = field(default_factory=list)
    failing_since: float | None = None


class Relay:
    """Answers questions. Lives in one event loop."""

    def __init__(self, settings: Gateway, *, books: Books, bucket: RateBucket, upstream: Upstream) -> None:
        self._settings = settings
        self._books = books
        self._bucket = bucket
        self._upstream = upstream
        self._flights: dict[str, _Flight] = {}
        self._line = asyncio.Lock()
        self._places = asyncio.Lock()
        self._freed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._live: set[str] = set()
        self._owed: list[asyncio.Task[None]] = []
        self._number = 0

    async def ask(self, asked: Asked, who: JobRef, token: str) -> Reply:
        """The answer. Raises Gone when the gateway stops before it has begun to ask."""
        question = question_of(who, asked.body)
        flight = self._flights.get(question)
        if flight is None:
            flight = self._flights[question] = _Flight()
            flight.task = asyncio.create_task(self._fly(question, flight, asked, who))
            # Nobody may be left to hear how it ended.
            flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        assert flight.task is not None
        flight.token = token
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1

    async def stop(self) -> None:
        """Begin nothing more; calls under way come to their end and are kept."""
        self._stopping.set()
        self._freed.set()
        tasks = [flight.task for flight in self._flights.values() if flight.task is not None]
        await asyncio.gather(*tasks, *self._owed, return_exceptions=True)

    async def keep_places(self) -> None:
        """Say again and again that the calls under way live. Runs until it is cancelled."""
        while True:
            await asyncio.sleep(LEASE_S / 3)
            async with self._places:
                if self._live:
                    await self._told(lambda: self._bucket.renew(tuple(self._live)))

    async def _fly(self, question: str, flight: _Flight, asked: Asked, who: JobRef) -> Reply:
        try:
            kept = await asyncio.to_thread(self._books.replay, question, asked, who)
            if kept is not None:
                return kept
            while True:
                said = await self._try(question, flight, asked, who)
                if said is not None:
                    return said
        finally:
            del self._flights[question]

    async def _try(self, question: str, flight: _Flight, asked: Asked, who: JobRef) -> Reply | None:
        """One try; None: there may be another."""
        taken = await self._admitted(flight, asked, who)
        if isinstance(taken, Reply):
            return taken
        heard: Heard | None = None
        outcome: Outcome | None = None
        short: BudgetReached | None = None
        try:
            # It may have waited for long: the job may have ended, its box may be gone.
            if await asyncio.to_thread(self._books.job_of, flight.token) is None:
                return replies.unknown_token()
            kept = await asyncio.to_thread(self._books.reserve, who, asked, self._settings.call_limit_s + 60.0)
            if isinstance(kept, BudgetReached):
                short = kept
            else:
                heard = await self._upstream.call(asked.body, asked.version, bearer=asked.bearer)
                outcome = classify(heard)
                flight.tries += [outcome.why] if outcome.why else []
                tries = tuple(flight.tries)
                await asyncio.to_thread(self._books.settle, question, asked, who, kept, heard, outcome, tries)
        finally:
            await self._free(taken, heard, outcome)
        if short is not None:
            return await self._short(short, asked, who, flight)
        assert heard is not None
        assert outcome is not None
        return await self._after(flight, asked, who, heard, outcome)

    async def _after(
        self, flight: _Flight, asked: Asked, who: JobRef, heard: Heard, outcome: Outcome
    ) -> Reply | None:
        match outcome.next:
            case Next.KEEP:
                return replies.whole(heard.body, heard.headers["request-id"], replayed=False)
            case Next.REFUSE:
                return replies.passed_on(heard)
            case Next.PARK:
                after_s = max(outcome.retry_after_s or 0.0, self._settings.rest_s)
                return await self._park(asked, who, flight, outcome.why, after_s)
            case Next.AGAIN:
                return await self._wait(flight, asked, who, outcome)

    async def _wait(self, flight: _Flight, asked: Asked, who: JobRef, outcome: Outcome) -> Reply | None:
        """Back off after a failure; an answer when that has gone on for too long."""
        now = time.monotonic()
        flight.failing_since = flight.failing_since or now
        if now - flight.failing_since >= self._settings.patience_s:
            return await self._give_up(flight, asked, who, outcome.why)
        if outcome.strain is Strain.BROKEN:
            # The others' answers may be whole: this one alone waits, and not all of them equally long.
            doubled = self._settings.backoff_s * 2 ** min(30, len(flight.tries) - 1)
            most = min(self._settings.backoff_most_s, doubled)
            await self._pause(most * random.uniform(0.5, 1.0))
        return None

    async def _give_up(self, flight: _Flight, asked: Asked, who: JobRef, why: str) -> Reply:
        """Park the job; where no other call works either, nobody asks for a while."""
        found = await self._told(self._bucket.look)
        if found is not None and found.failing_s >= self._settings.patience_s:
            await self._told(lambda: self._bucket.rest(self._settings.rest_s))
        return await self._park(asked, who, flight, why, self._settings.rest_s)

    async def _park(self, asked: Asked, who: JobRef, flight: _Flight, why: str, after_s: float) -> Reply:
        await asyncio.to_thread(self._books.parked, asked, who, why, tuple(flight.tries))
        return replies.park_model(why, after_s)

    async def _admitted(self, flight: _Flight, asked: Asked, who: JobRef) -> Taken | Reply:
        """A place among the calls under way: first come, first served."""
        begun = time.monotonic()
        silent_since: float | None = None
        async with self._line:
            while True:
                self._check(flight)
                self._freed.clear()
                now = time.monotonic()
                try:
                    found = await asyncio.to_thread(self._take, asked)
                except BrokerUnavailable as error:
                    silent_since = silent_since or now
                    if now - silent_since >= self._settings.patience_s:
                        return await self._park(asked, who, flight, str(error), self._settings.rest_s)
                    await self._pause(LOOK_S)
                    continue
                if isinstance(found, Taken):
                    self._live.add(found.id)
                    return found
                silent_since = None
                parked = await self._no_use(found, begun, flight, asked, who)
                if parked is not None:
                    return parked
                await self._pause(min(found.wait_s, LOOK_S), until_freed=True)

    async def _no_use(self, busy: Busy, begun: float, flight: _Flight, asked: Asked, who: JobRef) -> Reply | None:
        """An answer when waiting on would be longer than a request waits."""
        waited = time.monotonic() - begun
        match busy.why:
            case "rest":
                return await self._park(asked, who, flight, "it is overloaded", busy.wait_s)
            case "pause" if waited + busy.wait_s > self._settings.patience_s:
                return await self._park(asked, who, flight, "it asks for a pause", busy.wait_s)
            case _ if busy.failing_s >= self._settings.patience_s and waited >= self._settings.patience_s:
                return await self._give_up(flight, asked, who, "it has failed for long")
            case _:
                return None

    def _take(self, asked: Asked) -> Taken | Busy:
        self._number += 1
        name = f"{id(self):x}-{time.time_ns():x}-{self._number}"
        tokens = len(asked.body) // _BYTES_PER_TOKEN
        return self._bucket.take(name, input_tokens=tokens, max_tokens=asked.max_tokens)

    async def _free(self, taken: Taken, heard: Heard | None, outcome: Outcome | None) -> None:
        """The place is free; `heard` is None when no call was made."""
        async with self._places:
            self._live.discard(taken.id)
            if heard is None or outcome is None:
                await self._told(lambda: self._bucket.give_back(taken))
            else:
                tokens = Tokens() if heard.reading is None else heard.reading.tokens
                used = Used(input=tokens.prompt - tokens.cache_read, output=tokens.output)
                after_s = outcome.retry_after_s
                tell = partial(self._bucket.done, taken, outcome.strain, used, retry_after_s=after_s)
                if await self._told(tell) is None:
                    self._owed = [task for task in self._owed if not task.done()]
                    self._owed.append(asyncio.create_task(self._tell_later(tell)))
        self._freed.set()

    async def _tell_later(self, tell: Callable[[], State]) -> None:
        """A Redis that was away for a moment still holds the place of a call that has ended meanwhile."""
        for _ in range(int(LEASE_S / LOOK_S)):
            await self._pause(LOOK_S)
            if self._stopping.is_set() or await self._told(tell) is not None:
                return

    async def _short(self, reached: BudgetReached, asked: Asked, who: JobRef, flight: _Flight) -> Reply | None:
        """Wait for calls under way that may leave enough, or an answer."""
        if reached.fits_later:
            await self._pause(LOOK_S)
            return None
        after_s = _to_midnight() if reached.scope is Scope.DAY else None
        said = replies.park_budget(reached, after_s)
        await asyncio.to_thread(self._books.parked, asked, who, "the budget is reached", tuple(flight.tries))
        return said

    def _check(self, flight: _Flight) -> None:
        if self._stopping.is_set() or flight.waiting == 0:
            raise Gone

    async def _pause(self, seconds: float, *, until_freed: bool = False) -> None:
        """Wait; shorter when the gateway stops, or a place is free."""
        waiters = [asyncio.create_task(self._stopping.wait())]
        waiters += [asyncio.create_task(self._freed.wait())] if until_freed else []
        await asyncio.wait(waiters, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for waiter in waiters:
            waiter.cancel()

    async def _told(self, tell: Callable[[], T]) -> T | None:
        """Tell the bucket; one that is away has lost what it would be told."""
        try:
            return await asyncio.to_thread(tell)
        except BrokerUnavailable:
            return None


def question_of(who: JobRef, body: bytes) -> str:
    """What names a question: who asks, in which attempt, and every byte."""
    return hashlib.sha256(f"{who.job}\0{who.attempt}\0".encode() + body).hexdigest()


def _to_midnight() -> float:
    now = datetime.now(UTC)
    begins = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (begins - now).total_seconds()

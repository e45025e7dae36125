"""What the gateway writes down: money before and after each call, answers paid for, transcripts, log lines."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from farm.errors import ArtifactMissing, LedgerUnavailable, NoSpace
from farm.ledger import Answer, BudgetReached, JobRef, Ledger, Reservation, Usage
from farm.logs import Action, context
from farm.models import ModelTable
from farm.settings import Gateway
from farm.store import ArtifactStore
from workers.gateway import reply as replies
from workers.gateway.outcome import Heard, Next, Outcome
from workers.gateway.place import GatewayPlace
from workers.gateway.reply import Reply
from workers.gateway.request import Asked
from workers.gateway.transcripts import append, new_in
from workers.gateway.usable import budgets_of

_log = logging.getLogger(__name__)
T = TypeVar("T")
#: What was paid for is written even when the disk or the ledger needs so long, seconds.
INSIST_S = 60.0


class Books:
    """Ledger, artifact store and transcripts of one gateway. Safe for threads; every method may block."""

    def __init__(
        self,
        settings: Gateway,
        *,
        ledger: Ledger,
        store: ArtifactStore,
        models: ModelTable,
        place: GatewayPlace,
        key: str | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._prices = models.version
        self._place = place
        self._secrets = () if key is None else (key,)
        self._clock = clock
        self._limits = budgets_of(settings)

    def job_of(self, token: str) -> JobRef | None:
        """In whose name somebody asks; None: nobody who may."""
        return self._ledger.token_job(token)

    def replay(self, question: str, asked: Asked, who: JobRef) -> Reply | None:
        """The answer that was paid for, if it was and is still there."""
        known = self._ledger.answer(question)
        if known is None:
            return None
        try:
            body = self._store.get(known.sha256)
        except ArtifactMissing as error:
            _log.warning("%s; it is bought again", error, extra=context(Action.GATEWAY_FAILED, **asdict(who)))
            return None
        self._write(asked, who, outcome="replayed", request=known.request)
        return replies.whole(body, known.request, replayed=True)

    def reserve(self, who: JobRef, asked: Asked, ttl_s: float) -> Reservation | BudgetReached:
        """Money for one try."""
        return self._ledger.reserve(who.job, asked.most_micro_usd, self._limits, ttl_s=ttl_s)

    def settle(
        self,
        question: str,
        asked: Asked,
        who: JobRef,
        kept: Reservation,
        heard: Heard,
        outcome: Outcome,
        tries: tuple[str, ...],
    ) -> None:
        """What a try came to; a whole answer is kept with it."""
        usage = self._usage(asked, who, heard, whole=outcome.next is Next.KEEP)
        answer = None
        if outcome.next is Next.KEEP:
            digest = _insist(lambda: self._store.put(heard.body))
            answer = Answer(question=question, sha256=digest, request=heard.headers["request-id"])
        _insist(lambda: self._ledger.settle(kept, usage, answer))
        cost = 0 if usage is None else usage.cost_micro_usd
        _log.info(
            "%s",
            outcome.why or "answered",
            extra=context(
                Action.MODEL_ASKED,
                **asdict(who),
                stage=asked.stage.value,
                model=asked.model.id,
                status=heard.status,
                request=heard.headers.get("request-id"),
                seconds=round(heard.seconds, 3),
                micro_usd=cost,
            ),
        )
        if outcome.next in (Next.KEEP, Next.REFUSE):
            self._write(
                asked,
                who,
                outcome="answered" if outcome.next is Next.KEEP else "refused",
                request=heard.headers.get("request-id"),
                answer=None if heard.reading is None else heard.reading.message,
                why=outcome.why or None,
                micro_usd=cost,
                tries=list(tries),
            )

    def parked(self, asked: Asked, who: JobRef, why: str, tries: tuple[str, ...]) -> None:
        """A question that got no answer."""
        extra = context(Action.MODEL_PARKED, **asdict(who), stage=asked.stage.value, tries=len(tries))
        _log.warning("%s", why, extra=extra)
        self._write(asked, who, outcome="parked", why=why, tries=list(tries))

    def _usage(self, asked: Asked, who: JobRef, heard: Heard, *, whole: bool) -> Usage | None:
        if heard.reading is None or not heard.reading.begun:
            return None
        tokens = heard.reading.tokens
        return Usage(
            request=heard.headers["request-id"],
            run=who.run,
            job=who.job,
            op=who.op,
            attempt=who.attempt,
            stage=asked.stage,
            visit=asked.visit,
            step=asked.step,
            model=asked.model.id,
            at=self._clock(),
            input_tokens=tokens.input,
            cache_write_5m_tokens=tokens.cache_write_5m,
            cache_write_1h_tokens=tokens.cache_write_1h,
            cache_read_tokens=tokens.cache_read,
            output_tokens=tokens.output,
            cost_micro_usd=asked.model.cost(tokens),
            prices=self._prices,
            whole=whole,
        )

    def _write(self, asked: Asked, who: JobRef, **more: Any) -> None:
        """A line of the transcript; a full disk does not cost the answer."""
        line = {
            "at": self._clock(),
            "stage": asked.stage.value,
            "visit": asked.visit,
            "repair": asked.repair,
            "step": asked.step,
            "model": asked.model.id,
            "bytes": len(asked.body),
            "new": new_in(asked.content),
            **more,
        }
        try:
            append(self._place.transcript(who.job, who.attempt), line, self._secrets)
        except OSError as error:
            _log.warning("no transcript: %s", error, extra=context(Action.GATEWAY_FAILED, **asdict(who)))


def _insist(act: Callable[[], T]) -> T:
    end = time.monotonic() + INSIST_S
    while True:
        try:
            return act()
        except (LedgerUnavailable, NoSpace, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(1.0)

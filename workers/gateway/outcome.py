"""What follows from one try to get an answer: a table over what was heard, conservative where it is unknown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from workers.gateway.stream import Reading


class Next(StrEnum):
    """What the gateway does with what it heard."""

    KEEP = "keep"  #: it is whole: keep it and hand it on
    REFUSE = "refuse"  #: the request itself is at fault: hand the error on
    AGAIN = "again"  #: it may be otherwise the next time
    PARK = "park"  #: it will be the same for a while: no use in asking on


class Strain(StrEnum):
    """What a try says about the API as a whole; the shared bucket acts on it."""

    FINE = "fine"  #: it answers
    LIMITED = "limited"  #: we ask too much: fewer calls at once, and a pause
    OVERLOADED = "overloaded"  #: it has too much to do: likewise
    BROKEN = "broken"  #: this one answer went wrong
    NONE = "none"  #: it says nothing


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What came back from one try."""

    status: int | None  #: of HTTP; None: no answer came
    headers: Mapping[str, str] = field(default_factory=dict)  #: lower-case names; `request-id` is always there
    body: bytes = b""
    reading: Reading | None = None  #: of a stream
    problem: str | None = None  #: why it ended before its end: cut, silent, refused
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What follows."""

    next: Next
    strain: Strain
    why: str  #: one sentence without a secret; empty for KEEP
    retry_after_s: float | None = None  #: as the API asks for it


#: Errors in a stream that another try may not meet; all others are the request's.
_PASSING = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
_BY_STATUS = {429: Strain.LIMITED, 503: Strain.OVERLOADED, 529: Strain.OVERLOADED}
_BY_KIND = {"rate_limit_error": Strain.LIMITED, "overloaded_error": Strain.OVERLOADED}
#: A request is not at fault when the account is: the API says so by a status or in words.
_ACCOUNT = {401: "the API refuses the farm's key", 402: "the API wants the account's payment settled"}
_ACCOUNT_WORDS = ("credit balance", "usage limits")
#: Statuses that another try may not meet.
_AGAIN = frozenset({408, 409, 425})


def classify(heard: Heard) -> Outcome:
    """What follows from a try."""
    retry_after = _seconds(heard.headers.get("retry-after"))
    if heard.status is None:
        return Outcome(next=Next.AGAIN, strain=Strain.BROKEN, why=heard.problem or "no answer came")
    if heard.status == 200:
        return _stream(heard)
    kind, message = _error(heard.body)
    if heard.status < 400 or (heard.status < 500 and kind is None and heard.status != 429):
        why = f"status {heard.status} from something that is not the API; see gateway.url"
        return Outcome(next=Next.AGAIN, strain=Strain.BROKEN, why=why)
    why = f"status {heard.status} ({kind or 'no API error'}): {message}"
    if heard.status in _ACCOUNT:
        return Outcome(next=Next.PARK, strain=Strain.NONE, why=f"{_ACCOUNT[heard.status]}: {message}")
    if heard.status < 500 and any(words in message.lower() for words in _ACCOUNT_WORDS):
        return Outcome(next=Next.PARK, strain=Strain.NONE, why=why, retry_after_s=retry_after)
    passing = heard.status in (429, *_AGAIN) or heard.status >= 500
    told = heard.headers.get("x-should-retry")
    if not passing and told != "true":
        return Outcome(next=Next.REFUSE, strain=Strain.FINE, why=why)
    strain = _BY_STATUS.get(heard.status, Strain.BROKEN)
    further = Next.PARK if told == "false" else Next.AGAIN
    return Outcome(next=further, strain=strain, why=why, retry_after_s=retry_after)


def _stream(heard: Heard) -> Outcome:
    reading = heard.reading
    if reading is None:
        return Outcome(next=Next.AGAIN, strain=Strain.BROKEN, why="the answer is not a stream")
    if reading.error is not None:
        kind, message = reading.error
        why = f"an error in the middle of the stream ({kind}): {message}"
        if kind not in _PASSING:
            return Outcome(next=Next.REFUSE, strain=Strain.FINE, why=why)
        return Outcome(next=Next.AGAIN, strain=_BY_KIND.get(kind, Strain.BROKEN), why=why)
    if heard.problem is not None:
        return Outcome(next=Next.AGAIN, strain=Strain.BROKEN, why=heard.problem)
    if reading.garbled:
        return Outcome(next=Next.AGAIN, strain=Strain.BROKEN, why="the stream holds what is no event of the API")
    if not reading.whole:
        return Outcome(next=Next.AGAIN, strain=Strain.BROKEN, why="the stream ended before its message did")
    return Outcome(next=Next.KEEP, strain=Strain.FINE, why="")


def _error(body: bytes) -> tuple[str | None, str]:
    """Kind and message of an error of the API; None: it is none."""
    try:
        error = json.loads(body)["error"]
        return str(error["type"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return None, body[:200].decode("utf-8", "replace").strip()


def _seconds(text: str | None) -> float | None:
    """Of a retry-after header; dates are not understood, and negative ones not believed."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return min(value, 24 * 3600.0) if value >= 0 else None

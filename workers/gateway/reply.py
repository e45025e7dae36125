"""What the gateway answers a box: the API's own bytes, or an error in the API's form."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.ledger import BudgetReached
from farm.models import dollars
from workers.gateway.outcome import Heard
from workers.gateway.request import Refusal
from workers.gateway.stream import StreamError

#: Says that the job is to be parked, and why: `model` or `budget`.
PARK = "x-farm-park"
#: Says that the answer was bought before.
REPLAYED = "x-farm-replayed"
#: Statuses of errors that come in the middle of a stream.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 403,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def whole(body: bytes, request: str, *, replayed: bool) -> Reply:
    """An answer's stream, as it came."""
    headers = {"content-type": "text/event-stream; charset=utf-8", "request-id": request}
    return Reply(status=200, body=body, headers=headers | ({REPLAYED: "1"} if replayed else {}))


def refused(refusal: Refusal) -> Reply:
    """A request that is not sent on."""
    return _error(refusal.status, refusal.kind, refusal.message)


def passed_on(heard: Heard) -> Reply:
    """The API's own refusal; one that came in a stream becomes an answer without one."""
    error: StreamError | None = None if heard.reading is None else heard.reading.error
    if error is not None:
        return _error(_STATUS.get(error.kind, 400), error.kind, error.message)
    headers = {name: heard.headers[name] for name in ("request-id", "content-type") if name in heard.headers}
    return Reply(status=heard.status or 400, body=heard.body, headers=headers)


def unknown_token() -> Reply:
    """Nobody of this farm, or nobody who may still ask."""
    return _error(401, "authentication_error", "the token is of no job whose box works")


def park_model(why: str, after_s: float) -> Reply:
    """The API gives no answer for now."""
    headers = {PARK: "model", "retry-after": str(max(1, math.ceil(after_s)))}
    return _error(529, "overloaded_error", f"no answer from the model API for now: {why}", headers)


def park_budget(reached: BudgetReached, after_s: float | None) -> Reply:
    """There is not enough money left for the call."""
    headers = {PARK: "budget"}
    if after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(after_s)))
    message = (
        f"the budget of the {reached.scope.value}, {dollars(reached.limit)}, does not cover another call: "
        f"{dollars(reached.spent)} are spent"
    )
    return _error(503, "api_error", message, headers)


def _error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}, ensure_ascii=False)
    return Reply(
        status=status, body=body.encode(), headers={"content-type": "application/json", **(headers or {})}
    )

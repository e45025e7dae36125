"""The one place that speaks to the model: the anthropic SDK, over the gateway's socket."""

import time
from pathlib import Path
from typing import Any

import anthropic
import httpx2

from containers.box.agent.conversation import Answer, Json
from containers.box.agent.loop import Refused
from farm.job import ParkReason
from farm.orders import AgentOrder, Parking

#: Says that the job is to be parked, and why; see workers/gateway/reply.py.
PARK = "x-farm-park"
#: A gateway that is started again is back within this time, seconds.
PATIENCE_S = 120.0
PAUSE_S = 1.0
#: The gateway waits for the API longer than any of its own limits, seconds.
CALL_S = 3600.0
#: Errors of the request itself.
_OURS = frozenset({400, 401, 403, 404, 413, 422})


class ModelClient:
    """Asks in the name of one job."""

    def __init__(self, order: AgentOrder, *, patience_s: float = PATIENCE_S) -> None:
        transport = httpx2.HTTPTransport(uds=order.socket)
        self._sdk = anthropic.Anthropic(
            base_url="http://gateway",
            api_key=Path(order.token_file).read_text(encoding="utf-8").strip(),
            max_retries=0,
            http_client=httpx2.Client(transport=transport, timeout=CALL_S),
        )
        self._patience_s = patience_s

    def ask(self, request: Json, headers: dict[str, str]) -> Answer | Parking | Refused:
        """The answer to a request; a gateway that is away for a moment is waited for."""
        began = time.monotonic()
        while True:
            try:
                return self._once(request, headers)
            except anthropic.APIStatusError as error:
                said = _said(error)
                if said is not None:
                    return said
                why = f"the gateway answers {error.status_code}: {error.message}"
            except (anthropic.APIConnectionError, httpx2.TransportError) as error:
                why = f"the gateway does not answer: {error}"
            if time.monotonic() - began > self._patience_s:
                return Parking(reason=ParkReason.MODEL, summary=why)
            time.sleep(PAUSE_S)

    def _once(self, request: Json, headers: dict[str, str]) -> Answer:
        began = time.monotonic()
        with self._sdk.messages.stream(**request, extra_headers=headers) as stream:
            message = stream.get_final_message()
        usage = message.usage
        return Answer(
            content=[_plain(block) for block in message.content],
            stop_reason=message.stop_reason or "end_turn",
            tokens=usage.input_tokens
            + (usage.cache_creation_input_tokens or 0)
            + (usage.cache_read_input_tokens or 0)
            + usage.output_tokens,
            seconds=time.monotonic() - began,
        )


def _said(error: anthropic.APIStatusError) -> Parking | Refused | None:
    """What an error answer means; None: ask again."""
    reason = error.response.headers.get(PARK)
    if reason in (ParkReason.MODEL.value, ParkReason.BUDGET.value):
        after = error.response.headers.get("retry-after")
        return Parking(
            reason=ParkReason(reason), summary=_message(error), after_s=float(after) if after is not None else None
        )
    return Refused(summary=_message(error)) if error.status_code in _OURS else None


def _message(error: anthropic.APIStatusError) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error")
    return str(inner.get("message", error.message)) if isinstance(inner, dict) else error.message


def _plain(block: Any) -> Json:
    """A content block as it may be sent back: what the API accepts, nothing that the SDK adds."""
    value: Json = block.to_dict()
    kept = {
        "text": ("type", "text"),
        "thinking": ("type", "thinking", "signature"),
        "redacted_thinking": ("type", "data"),
        "tool_use": ("type", "id", "name", "input"),
    }.get(value["type"], tuple(value))
    return {name: value[name] for name in kept if name in value}

"""The Messages API as bytes: answers as server-sent events or as one message, errors, refused requests."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drivers.scenarios.scenario import Turn
from drivers.scenarios.tokens import Counted, tokens_of

#: Error type of each documented status.
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
#: Characters of a piece of text in one event: about a token.
PIECE = 4
#: Most cache breakpoints of a request.
BREAKPOINTS = 4
#: Least thinking budget, tokens.
LEAST_THINKING = 1024


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One message of the model."""

    id: str  #: its message id
    model: str  #: as it was asked for
    blocks: tuple[dict[str, Any], ...]  #: content blocks
    stop_reason: str  #: why it stops
    usage: dict[str, Any]  #: as the API reports it at the end


def error_body(status: int, message: str, request_id: str) -> bytes:
    """The body of an error answer."""
    return _dumped(
        {
            "type": "error",
            "error": {"type": ERROR_TYPES.get(status, "api_error"), "message": message},
            "request_id": request_id,
        }
    )


def error_event(kind: str) -> bytes:
    """The event that ends a stream which fails in the middle."""
    message = "Overloaded" if kind == "overloaded_error" else "Internal server error"
    return _event({"type": "error", "error": {"type": kind, "message": message}})


def answer(turn: Turn, *, number: int, model: str, counted: Counted, max_tokens: int) -> Answer:
    """What a turn says; cut like the API does when it is longer than `max_tokens` (text alone)."""
    blocks: list[dict[str, Any]] = []
    if turn.thinking:
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": f"sig-{number:06d}"})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    for place, call in enumerate(turn.tools):
        blocks.append(
            {"type": "tool_use", "id": f"toolu_{number:06d}_{place:02d}", "name": call.name, "input": call.input}
        )
    reason = turn.reason
    output = tokens_of(blocks) if blocks else 1
    if output > max_tokens and not turn.tools:
        blocks = [{"type": "text", "text": turn.text[: max_tokens * PIECE]}]
        output, reason = max_tokens, "max_tokens"
    usage = {
        "input_tokens": counted.input,
        "cache_creation_input_tokens": counted.write_5m + counted.write_1h,
        "cache_read_input_tokens": counted.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counted.write_5m,
            "ephemeral_1h_input_tokens": counted.write_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }
    return Answer(id=f"msg_{number:06d}", model=model, blocks=tuple(blocks), stop_reason=reason, usage=usage)


def message(whole: Answer) -> bytes:
    """The answer to a request that does not stream."""
    return _dumped(_head(whole) | {"content": list(whole.blocks), "stop_reason": whole.stop_reason})


def events(whole: Answer) -> Iterator[bytes]:
    """The answer as a stream, one event each."""
    first = _head(whole) | {"usage": whole.usage | {"output_tokens": 1}}
    yield _event({"type": "message_start", "message": first})
    yield _event({"type": "ping"})
    for index, block in enumerate(whole.blocks):
        yield from _block(index, block)
    usage = {name: whole.usage[name] for name in _FINAL_USAGE}
    delta = {"stop_reason": whole.stop_reason, "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": delta, "usage": usage})
    yield _event({"type": "message_stop"})


_FINAL_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def refusal(body: Mapping[str, Any]) -> str | None:
    """What is wrong with a request, in the API's way, or None."""
    messages = body.get("messages")
    if not isinstance(body.get("model"), str):
        return "model: Field required"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return "max_tokens: Input should be greater than or equal to 1"
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    if messages[0].get("role") != "user":
        return 'messages: first message must use the "user" role'
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens", 0)
        if budget < LEAST_THINKING:
            return f"thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_THINKING}"
        if budget >= body["max_tokens"]:
            return "`max_tokens` must be greater than `thinking.budget_tokens`"
    marked = json.dumps(body).count('"cache_control": {')
    if marked > BREAKPOINTS:
        return f"A maximum of {BREAKPOINTS} blocks with cache_control may be provided. Found {marked}."
    return _unanswered(messages)


def _unanswered(messages: list[dict[str, Any]]) -> str | None:
    """Each tool_use must have its tool_result in the very next message, and no result stands alone."""
    asked: set[str] = set()
    for place, each in enumerate(messages):
        blocks = each["content"] if isinstance(each.get("content"), list) else []
        given = {block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"}
        if asked - given:
            return (
                f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                + ", ".join(sorted(asked - given))
            )
        if given - asked:
            return f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks: " + ", ".join(
                sorted(given - asked)
            )
        asked = {block["id"] for block in blocks if block.get("type") == "tool_use"}
    if asked:
        return f"messages.{len(messages)}: `tool_use` ids were found without `tool_result` blocks: " + ", ".join(
            sorted(asked)
        )
    return None


def _head(whole: Answer) -> dict[str, Any]:
    return {
        "id": whole.id,
        "type": "message",
        "role": "assistant",
        "model": whole.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": whole.usage,
    }


def _block(index: int, block: Mapping[str, Any]) -> Iterator[bytes]:
    empty: dict[str, Any]
    deltas: list[dict[str, Any]]
    match block["type"]:
        case "text":
            empty = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        case "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            empty = {**block, "input": {}}
            pieces = ["", *_pieces(json.dumps(block["input"], ensure_ascii=False))]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    yield _event({"type": "content_block_start", "index": index, "content_block": empty})
    for delta in deltas:
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
    yield _event({"type": "content_block_stop", "index": index})


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _event(data: Mapping[str, Any]) -> bytes:
    return b"event: " + str(data["type"]).encode() + b"\ndata: " + _dumped(data) + b"\n\n"


def _dumped(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

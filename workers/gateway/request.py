"""What a box may ask: a reading of the request that decides alone, and changes no byte.

Refused is all that reaches out (tools that the API's own machines run, addresses to fetch), all that has a price
which the price table does not know, and JSON that two readers could read differently.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from farm.models import Model, ModelTable
from farm.pipeline.stage import Stage

#: Headers by which the box says where it is.
STAGE, VISIT, REPAIR = "x-farm-stage", "x-farm-visit", "x-farm-repair"
#: Fields of a request that are known to cost nothing of their own.
FIELDS = frozenset(
    {
        "model",
        "max_tokens",
        "messages",
        "system",
        "stream",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "stop_sequences",
        "temperature",
        "top_k",
        "top_p",
        "metadata",
        "cache_control",
    }
)
#: Blocks that a conversation may hold.
BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result"})
#: A token of a prompt is at least so many bytes of a request, on the average of any real one.
BYTES_PER_TOKEN = 2
#: What the API adds to a prompt by itself, tokens.
ADDED_TOKENS = 2_000


class Refusal(NamedTuple):
    """Why a request is not sent on."""

    status: int  #: of HTTP
    kind: str  #: the API's own word for such an error
    message: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that may be sent on."""

    body: bytes  #: as it came
    version: str  #: of the API
    bearer: bool  #: the box sends its token as `authorization: Bearer`, and the key goes on likewise
    model: Model
    max_tokens: int
    stage: Stage
    visit: int  #: of the stage, from 1
    repair: bool  #: a malformed reply is being repaired
    step: int  #: number of the call in its conversation, from 1
    content: Mapping[str, Any]  #: the body, read

    @property
    def most_micro_usd(self) -> int:
        """Most that it may cost."""
        prompt = -(-len(self.body) // BYTES_PER_TOKEN) + ADDED_TOKENS
        return self.model.most(prompt_tokens=prompt, max_tokens=self.max_tokens)


class Credential(NamedTuple):
    """What somebody shows, and how: SDKs have sent keys in one header, then in another."""

    token: str  #: empty: nothing
    bearer: bool  #: as `authorization: Bearer`, not as `x-api-key`


def credential(headers: Mapping[str, str]) -> Credential:
    """What somebody shows. `headers` has lower-case names."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return Credential(token.strip(), True)
    return Credential(headers.get("x-api-key", ""), False)


class _Ambiguous(ValueError):
    pass


def read(body: bytes, headers: Mapping[str, str], models: ModelTable) -> Asked | Refusal:
    """What is asked, or why it is refused. `headers` has lower-case names."""
    if "anthropic-beta" in headers:
        return _forbidden("anthropic-beta: the gateway lets no beta feature through")
    if not headers.get("anthropic-version"):
        return _invalid("anthropic-version: header is required")
    try:
        stage, visit = Stage(headers.get(STAGE, "")), int(headers.get(VISIT, ""))
        repair = {"0": False, "1": True}[headers.get(REPAIR, "0")]
    except (ValueError, KeyError):
        return _invalid(f"{STAGE} is a stage, {VISIT} a number from 1, {REPAIR} 0 or 1")
    try:
        content = json.loads(body.decode("utf-8"), object_pairs_hook=_once, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        return _invalid(f"the body is not JSON that everybody reads alike: {error}")
    if not isinstance(content, dict):
        return _invalid("the body is not a JSON object")
    model_id, max_tokens = content.get("model"), content.get("max_tokens")
    model = models.by_id(model_id) if isinstance(model_id, str) else None
    if model is None:
        known = ", ".join(each.id for each in models.models.values())
        return _forbidden(f"model: {model_id!r} may not be asked; models.toml has {known}")
    if type(max_tokens) is not int or not 1 <= max_tokens <= model.max_tokens:
        return _invalid(f"max_tokens: {model.id} may be asked for 1 to {model.max_tokens}")
    if content.get("stream") is not True:
        return _invalid("stream: the gateway relays streams alone; set it to true")
    if visit < 1:
        return _invalid(f"{VISIT}: visits are counted from 1")
    problem = next(_problems(content), None)
    if problem is not None:
        return problem
    return Asked(
        body=body,
        version=headers["anthropic-version"],
        bearer=credential(headers).bearer,
        model=model,
        max_tokens=max_tokens,
        stage=stage,
        visit=visit,
        repair=repair,
        step=1 + sum(message["role"] == "assistant" for message in content["messages"]),
        content=content,
    )


def _problems(content: Mapping[str, Any]) -> Iterator[Refusal]:
    for name in content.keys() - FIELDS:
        yield _forbidden(f"{name}: the gateway does not know what this field does and costs")
    tools = content.get("tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        yield _invalid("tools: a list of objects")
        return
    for tool in tools:
        if tool.get("type", "custom") != "custom":
            yield _forbidden(f"tools: {tool['type']!r} is not a tool of the box; only such are let through")
    messages = content.get("messages")
    if not isinstance(messages, list) or not messages:
        yield _invalid("messages: at least one message is required")
        return
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            yield _invalid("messages: each has the role user or assistant")
            return
        yield from _blocks(message.get("content"), BLOCKS)
    yield from _blocks(content.get("system", ""), frozenset({"text"}))


def _blocks(content: Any, allowed: frozenset[str]) -> Iterator[Refusal]:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield _invalid("content: a text or a list of blocks")
        return
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in allowed:
            yield _forbidden(
                f"content: blocks of type {kind!r} are not let through, only {', '.join(sorted(allowed))}"
            )
        elif kind == "tool_result":
            yield from _blocks(block.get("content", ""), frozenset({"text"}))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Ambiguous("a name stands twice in an object")
    return found


def _constant(name: str) -> Any:
    raise _Ambiguous(f"{name} is no JSON")


def _invalid(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def _forbidden(message: str) -> Refusal:
    return Refusal(403, "permission_error", message)

import json
from typing import Any

import pytest

from farm.data import config_folder
from farm.models import load_models
from workers.gateway.request import Asked, Refusal, credential, read

MODELS = load_models(config_folder() / "models.toml")
HEADERS = {
    "anthropic-version": "2026-10-21",
    "x-farm-stage": "B",
    "x-farm-visit": "2",
    "authorization": "Bearer t",
}


def plain(**changes: Any) -> dict[str, Any]:
    talk = [{"role": "user", "content": "hi"}]
    asked = {"model": "claude-haiku-5-5", "max_tokens": 100, "stream": True, "messages": talk} | changes
    return {name: value for name, value in asked.items() if value is not None}


def said(changes: dict[str, Any], headers: dict[str, str] | None = None) -> Asked | Refusal:
    return read(json.dumps(plain(**changes)).encode(), HEADERS | (headers or {}), MODELS)


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def test_a_request_as_agents_make_it_is_read() -> None:
    talk = [
        {"role": "user", "content": "begin"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "bash", "input": {"type": "url"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "out"}]},
    ]
    marked = [{"type": "text", "text": "role", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    more = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    asked = said({"messages": talk, "system": marked, "tools": tools} | more, {"x-farm-repair": "1"})
    assert isinstance(asked, Asked)
    assert (asked.stage.value, asked.visit, asked.repair, asked.step) == ("B", 2, True, 2)
    assert (asked.model.id, asked.max_tokens, asked.bearer) == ("claude-haiku-5-5", 100, True)


@pytest.mark.parametrize(
    ("changes", "headers", "status", "says"),
    [
        ({"model": "claude-someone-else"}, {}, 403, "may not be asked"),
        ({"model": ["claude-haiku-5-5"]}, {}, 403, "may not be asked"),
        ({"max_tokens": 32_001}, {}, 400, "max_tokens"),
        ({"max_tokens": True}, {}, 400, "max_tokens"),
        ({"max_tokens": 0}, {}, 400, "max_tokens"),
        ({"stream": None}, {}, 400, "stream"),
        ({"stream": "yes"}, {}, 400, "stream"),
        ({"messages": []}, {}, 400, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, {}, 400, "role"),
        ({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, {}, 403, "web_fetch"),
        ({"tools": [{"type": None, "name": "x"}]}, {}, 403, "None"),
        ({"mcp_servers": [{"type": "url", "url": "http://x"}]}, {}, 403, "mcp_servers"),
        ({"service_tier": "auto"}, {}, 403, "service_tier"),
        ({"container": "x"}, {}, 403, "container"),
        (user({"type": "image", "source": {"type": "url", "url": "http://x"}}), {}, 403, "image"),
        (user({"type": "document", "source": {"type": "url", "url": "http://x"}}), {}, 403, "document"),
        (user({"type": "tool_result", "content": [{"type": "image", "source": {}}]}), {}, 403, "image"),
        ({"system": [{"type": "image"}]}, {}, 403, "image"),
        ({}, {"anthropic-beta": "context-1m-2025-08-07"}, 403, "beta"),
        ({}, {"anthropic-version": ""}, 400, "anthropic-version"),
        ({}, {"x-farm-stage": "Z"}, 400, "x-farm-stage"),
        ({}, {"x-farm-visit": "0"}, 400, "x-farm-visit"),
        ({}, {"x-farm-repair": "2"}, 400, "x-farm-repair"),
    ],
)
def test_what_reaches_out_or_has_an_unknown_price_is_refused(
    changes: dict[str, Any], headers: dict[str, str], status: int, says: str
) -> None:
    found = said(changes, headers)
    assert isinstance(found, Refusal)
    assert found.status == status
    assert says in found.message


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(plain()).replace("{", '{"model": "claude-opus-5-5", ', 1).encode(),
        json.dumps(plain()).replace("100", "NaN").encode(),
        json.dumps(plain()).encode("utf-16"),
        b"[1]",
        b"{",
        b'{"a":' * 100_000,
    ],
    ids=["a name twice", "NaN", "UTF-16", "a list", "cut", "deep"],
)
def test_json_that_two_readers_may_read_differently_is_refused(body: bytes) -> None:
    found = read(body, HEADERS, MODELS)
    assert isinstance(found, Refusal)
    assert found.status == 400


def test_most_that_a_request_may_cost_covers_every_class_of_its_prompt() -> None:
    asked = said({"messages": [{"role": "user", "content": "x" * 100_000}]})
    assert isinstance(asked, Asked)
    # 50,000 tokens written for an hour at 0.20 dollars a million, and 100 tokens at 0.50.
    assert asked.most_micro_usd > 50_000 * 0.20 + 100 * 0.50
    assert asked.most_micro_usd < 2 * (50_000 * 0.20)


def test_a_token_is_found_in_either_header() -> None:
    assert credential({"authorization": "Bearer t"}) == ("t", True)
    assert credential({"x-api-key": "t"}) == ("t", False)
    assert credential({"authorization": "Basic t"}) == ("", False)

"""Requests with the files that they point at: the call that is saved, the first message, what is counted."""

import json
from pathlib import Path
from typing import Any

from drivers.scenarios.modelserver import Call
from drivers.scenarios.pasted import compare, pasted
from tests.builders import RECIPES

RECIPE = RECIPES / "plain-copy"
POINTERS = (
    "| fact | value |\n|---|---|\n| stage | B |\n\nRead first, in this order:\n- /farm/recipe/agents/write.md"
)


def use(number: int, command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": command}}


def result(number: int, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}


def conversation() -> list[bytes]:
    """Three requests: the first is answered by a call that reads, the second by one that works."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": POINTERS}]},
        {"role": "assistant", "content": [use(1, 'cat "$TILEFARM_RECIPE/agents/write.md"')]},
        {"role": "user", "content": [result(1, "the role file")]},
        {"role": "assistant", "content": [use(2, "cp a b")]},
        {"role": "user", "content": [result(2, "done")]},
    ]
    made = [{"model": "m", "max_tokens": 10, "messages": messages[:number]} for number in (1, 3, 5)]
    return [json.dumps(body, separators=(",", ":")).encode() for body in made]


def test_the_call_that_only_read_is_saved_and_its_text_stands_in_the_first_message() -> None:
    role = (RECIPE / "agents" / "write.md").read_text(encoding="utf-8")
    first, second = list(pasted(conversation(), RECIPE))
    assert role in first["messages"][0]["content"][1]["text"]
    assert len(first["messages"]) == 1
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"][0]["input"] == {"command": "cp a b"}


def test_an_answer_that_worked_as_well_is_kept() -> None:
    bodies = [body.replace(b'cat \\"$TILEFARM_RECIPE/agents/write.md\\"', b"make x") for body in conversation()]
    assert [len(body["messages"]) for body in pasted(bodies, RECIPE)] == [1, 3, 5]


def test_both_ways_are_counted_as_a_server_sees_them() -> None:
    bodies = conversation()
    calls = [
        Call(number=n, at=0.0, bytes=1, sha256="", key_sha256="", key_in_body=False, headers=(), status=200)
        for n in range(3)
    ]
    found = compare("x", calls, bodies, Path(RECIPE))
    assert (found.pointers.requests, found.pasted.requests) == (3, 2)
    assert found.pointers.bytes == sum(map(len, bodies))
    assert found.pointers.first_bytes == len(bodies[0])
    assert found.pasted.first_bytes > found.pointers.first_bytes + 500

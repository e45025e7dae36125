"""What minimal pointers save: a play's requests, and the same with everything pasted, both counted on the wire.

An agent's first message points at files, and the agent reads what it needs. Pasted, the first message holds all of
them, and the calls that did nothing but read them are not made. Either is sent to a server that counts.
"""

import json
import re
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivers.scenarios.modelserver import Call, serving
from drivers.scenarios.scenario import Scenario

#: A line of the first message that points at a file of the recipe.
_POINTER = re.compile(r"^- .*?((?:agents|references|prompts)/[\w./-]+)\s*$", re.MULTILINE)
_READS = "$TILEFARM_RECIPE"


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Requests of one way of asking."""

    requests: int
    first_bytes: int  #: of the longest first request of a conversation
    bytes: int  #: of all of them


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A play's requests both ways."""

    name: str
    pointers: Wire
    pasted: Wire


def compare(name: str, calls: Sequence[Call], bodies: Sequence[bytes], recipe: Path) -> Compared:
    """Both ways; `bodies` are what the play sent, `recipe` is the folder that it was pointed at."""
    asked = [body for call, body in zip(calls, bodies, strict=True) if call.status == 200 and call.fault is None]
    return Compared(
        name=name,
        pointers=count(asked),
        pasted=count([json.dumps(body, separators=(",", ":")).encode() for body in pasted(asked, recipe)]),
    )


def pasted(bodies: Sequence[bytes], recipe: Path) -> Iterator[dict[str, Any]]:
    """The requests with the files that they point at in their first message."""
    for raw in bodies:
        body = json.loads(raw)
        messages = body["messages"]
        first = _text(messages[0])
        named = tuple(dict.fromkeys(_POINTER.findall(first)))
        texts = "".join(f"\n\n# {path}\n{(recipe / path).read_text(encoding='utf-8')}" for path in named)
        if len(messages) == 1 and named and _only_reads(body, bodies):
            continue  # the call that asked for nothing but these files
        opening = _with_text(messages[0], texts)
        later = messages[3:] if len(messages) > 2 and _reads(messages[1]) else messages[1:]
        yield {**body, "messages": [opening, *later]}


def count(bodies: Sequence[bytes]) -> Wire:
    """The requests as a server sees them that they are sent to."""
    play = Scenario.model_validate({"name": "count", "visits": [{"last_repeats": True, "turns": [{"text": "."}]}]})
    with serving(play) as (url, server):
        for body in bodies:
            headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
            request = urllib.request.Request(f"{url}/v1/messages", data=body, headers=headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
        first = [call.bytes for call in server.calls if call.turn == 0]
        return Wire(
            requests=len(server.calls),
            first_bytes=max(first, default=0),
            bytes=sum(call.bytes for call in server.calls),
        )


def _only_reads(body: Mapping[str, Any], bodies: Sequence[bytes]) -> bool:
    """Whether the answer to a first request did nothing but read what it was pointed at."""
    opening = _text(body["messages"][0])
    for raw in bodies:
        messages = json.loads(raw)["messages"]
        if len(messages) > 2 and _text(messages[0]) == opening:
            return _reads(messages[1])
    return False


def _reads(answer: Mapping[str, Any]) -> bool:
    calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    return bool(calls) and all(
        str(call["input"].get("command", "")).startswith("cat ") and _READS in call["input"]["command"]
        for call in calls
    )


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def _with_text(message: Mapping[str, Any], text: str) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": content + text}
    return {**message, "content": [*content, {"type": "text", "text": text}]}

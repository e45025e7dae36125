"""A transcript's lines as a view: who said what, in order."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from farm.views import SaidView, TalkView, TranscriptView


def transcript_view(
    job: str, attempts: Iterable[tuple[int, Iterable[Mapping[str, Any]]]], stage: str | None
) -> TranscriptView:
    """The calls of a job's attempts; of one stage where one is given."""
    calls = [
        _call(attempt, line)
        for attempt, lines in attempts
        for line in lines
        if stage is None or line.get("stage") == stage
    ]
    return TranscriptView(job=job, calls=tuple(calls))


def _call(attempt: int, line: Mapping[str, Any]) -> TalkView:
    new, answer = line.get("new") or {}, line.get("answer") or {}
    # What was asked stands once: a replay asks what stands above already.
    said = [] if line.get("outcome") == "replayed" else list(_asked(new))
    said += _blocks("assistant", answer.get("content", ""))
    return TalkView(
        attempt=attempt,
        at=float(line.get("at", 0.0)),
        stage=str(line.get("stage", "")),
        visit=int(line.get("visit", 1)),
        repair=bool(line.get("repair", False)),
        step=int(line.get("step", 1)),
        model=str(line.get("model", "")),
        outcome=str(line.get("outcome", "")),
        stop_reason=answer.get("stop_reason"),
        why=line.get("why"),
        tries=tuple(line.get("tries") or ()),
        micro_usd=int(line.get("micro_usd") or 0),
        said=tuple(said),
    )


def _asked(new: Mapping[str, Any]) -> Iterator[SaidView]:
    yield from _blocks("system", new.get("system", ""))
    names = [str(tool.get("name")) for tool in new.get("tools", ())]
    if names:
        yield SaidView(who="tools", kind="text", text=", ".join(names))
    for message in new.get("messages", ()):
        yield from _blocks(str(message.get("role")), message.get("content", ""))


def _blocks(who: str, content: Any) -> Iterator[SaidView]:
    if isinstance(content, str):
        if content:
            yield SaidView(who=who, kind="text", text=content)
        return
    for block in content:
        kind = str(block.get("type"))
        match kind:
            case "text" | "thinking":
                text = str(block.get(kind, ""))
            case "tool_use":
                text = f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
            case "tool_result":
                inner = [part.text for part in _blocks(who, block.get("content", ""))]
                text = ("error: " if block.get("is_error") else "") + "\n".join(inner)
            case _:
                text = ""
        yield SaidView(who=who, kind=kind, text=text)

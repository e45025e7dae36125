"""A conversation on disk: each step is written whole before the next begins, and another process goes on there.

FOLDER/head.json is the request without its messages, as it was at the beginning; FOLDER/NNNN.json are the steps;
FOLDER/NNNN-tool-K.json is what the K-th tool call of answer NNNN gave, NNNN-tool-K.begun says that it was begun.
What is sent is always read back from what was written, so a box that begins again sends the same bytes.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: A content block, a message or a request as the Messages API has it.
Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Said:
    """What we said. Empty content: nothing, the model goes on by itself."""

    content: list[Json]
    last: bool = False  #: the model was told that its next reply is its last
    kind: str = "said"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the model answered, as it is sent back."""

    content: list[Json]
    stop_reason: str
    tokens: int  #: read and written, all classes together
    seconds: float  #: wall clock of the call, its waits included
    kind: str = "answer"

    @property
    def text(self) -> str:
        """Its text blocks."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def calls(self) -> list[Json]:
        """Its tool calls, in order."""
        return [block for block in self.content if block["type"] == "tool_use"]


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a visit has used so far."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    last_tokens: int = 0  #: of the last call: the next one takes at least about as many


class Conversation:
    """The steps of a folder. With `before`, the continuation of a conversation that has ended."""

    def __init__(self, folder: Path, before: "Conversation | None" = None) -> None:
        self._folder = folder
        self._before = before
        folder.mkdir(parents=True, exist_ok=True)
        self._own: list[Said | Answer] = [_step(path) for path in sorted(folder.glob("[0-9]" * 4 + ".json"))]

    @property
    def steps(self) -> list[Said | Answer]:
        """All steps, those of the conversation before included."""
        return [*(self._before.steps if self._before else ()), *self._own]

    @property
    def begun(self) -> bool:
        """Whether anything was said in this folder."""
        return bool(self._own)

    @property
    def unfollowed(self) -> Answer | None:
        """The answer that nothing was said to yet."""
        last = self._own[-1] if self._own else None
        return last if isinstance(last, Answer) else None

    @property
    def told_last(self) -> bool:
        """Whether the model knows that it has no further call."""
        return any(step.last for step in self._own if isinstance(step, Said))

    @property
    def spent(self) -> Spent:
        """What all answers took, with the tools that were run for them."""
        answers = [step for step in self.steps if isinstance(step, Answer)]
        return Spent(
            calls=len(answers),
            tokens=sum(answer.tokens for answer in answers),
            seconds=sum(answer.seconds for answer in answers) + self._tool_seconds(),
            last_tokens=answers[-1].tokens if answers else 0,
        )

    def head(self, make: Callable[[], Json]) -> Json:
        """The request without its messages: as it was made first."""
        if self._before is not None:
            return self._before.head(make)
        path = self._folder / "head.json"
        if not path.exists():
            _write(path, make())
        head: Json = json.loads(path.read_bytes())
        return head

    def messages(self) -> list[Json]:
        """The messages of the next request."""
        roles = {"said": "user", "answer": "assistant"}
        return [{"role": roles[step.kind], "content": step.content} for step in self.steps if step.content]

    def add(self, step: Said | Answer) -> None:
        """Write a step; after this it is not repeated."""
        path = self._folder / f"{len(self._own):04}.json"
        _write(path, asdict(step))
        self._own.append(_step(path))

    def begin_tool(self, number: int) -> bool:
        """Note that a tool call of the last answer begins; False: it had begun in a box that was killed."""
        path = self._tool(number).with_suffix(".begun")
        before = path.exists()
        path.touch()
        return not before

    def tool_result(self, number: int) -> Json | None:
        """What that call gave, or None."""
        path = self._tool(number)
        return json.loads(path.read_bytes())["result"] if path.exists() else None

    def add_tool_result(self, number: int, result: Json, seconds: float) -> None:
        """Write what it gave."""
        _write(self._tool(number), {"result": result, "seconds": seconds})

    def _tool(self, number: int) -> Path:
        return self._folder / f"{len(self._own) - 1:04}-tool-{number}.json"

    def _tool_seconds(self) -> float:
        before = self._before._tool_seconds() if self._before else 0.0
        longest: dict[str, float] = {}  # those of one answer run at once
        for path in self._folder.glob("*-tool-*.json"):
            answer = path.name[:4]
            longest[answer] = max(longest.get(answer, 0.0), json.loads(path.read_bytes())["seconds"])
        return before + sum(longest.values())


def _step(path: Path) -> Said | Answer:
    value: Json = json.loads(path.read_bytes())
    return Said(**value) if value["kind"] == "said" else Answer(**value)


def _write(path: Path, value: Json) -> None:
    """Whole or not at all; in the order of its parts, which is the order on the wire."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)

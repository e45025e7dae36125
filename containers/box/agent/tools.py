"""What an agent may do: a shell, files of the workspace and of the artifact folder, a search in them."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from containers.box.agent import shell
from containers.box.agent.conversation import Answer, Conversation, Json
from containers.box.agent.loop import result_block

#: Longest command, seconds, unless the call asks for less.
LIMIT_S = 900.0
#: Tool calls of one answer that run at once.
AT_ONCE = 4
#: Lines that a search gives.
FOUND = 200

_TEXT = {"type": "string"}


def _tool(name: str, description: str, needed: tuple[str, ...], **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS: tuple[Json, ...] = (
    _tool(
        "bash",
        "Runs a command in the repository by bash; gives output and exit code. What it leaves running is ended.",
        ("command",),
        command=_TEXT,
        timeout_s={"type": "number", "description": "seconds; 900 at most"},
    ),
    _tool(
        "read",
        "Reads a text file, or lines `first` to `last` of it.",
        ("path",),
        path=_TEXT,
        first={"type": "integer"},
        last={"type": "integer"},
    ),
    _tool(
        "write",
        "Writes a whole file below the repository or the artifact folder; folders are made.",
        ("path", "content"),
        path=_TEXT,
        content=_TEXT,
    ),
    _tool(
        "edit",
        "Replaces a text that stands exactly once in a file.",
        ("path", "old", "new"),
        path=_TEXT,
        old=_TEXT,
        new=_TEXT,
    ),
    _tool(
        "search",
        "Lines that match a regular expression, below a folder or in a file.",
        ("pattern",),
        pattern=_TEXT,
        path=_TEXT,
    ),
)


class ToolError(Exception):
    """A call that could not be carried out, in words for the agent."""


class Tools:
    """The tools of one visit."""

    def __init__(self, *, workspace: Path, out: Path, recipe: Path, toolchain: Path) -> None:
        self._workspace = workspace
        own = ":".join(str(toolchain / part) for part in ("venv/bin", "rust/bin", "cuda/bin", "native/bin"))
        self._environment = {"PATH": f"{own}:/usr/local/bin:/usr/bin:/bin"}
        self._own = (workspace.resolve(), out.resolve())
        self._readable = (*self._own, recipe.resolve())

    def act(self, conversation: Conversation, answer: Answer, limit_s: float) -> list[Json]:
        """Results of an answer's calls in their order; what was done before a box was killed is not done again."""

        def one(number: int) -> Json:
            known = conversation.tool_result(number)
            if known is not None:
                return known
            call = answer.calls[number]
            again = not conversation.begin_tool(number)
            began = time.monotonic()
            text, failed = self.do(call["name"], call["input"], limit_s)
            if again:
                text = f"[the box was killed while this ran; it was run again]\n{text}"
            result = result_block(call, text, is_error=failed)
            conversation.add_tool_result(number, result, time.monotonic() - began)
            return result

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(one, range(len(answer.calls))))

    def do(self, name: str, given: dict[str, Any], limit_s: float) -> tuple[str, bool]:
        """What a call gives, and whether it failed."""
        try:
            match name:
                case "bash":
                    asked = float(given.get("timeout_s") or LIMIT_S)
                    limit = min(asked, limit_s, LIMIT_S)
                    return shell.run(str(given["command"]), self._workspace, limit, self._environment)
                case "read":
                    return shell.shown(self._read(given)), False
                case "write":
                    return self._write(given), False
                case "edit":
                    return self._edit(given), False
                case "search":
                    return self._search(given), False
                case _:
                    return f"there is no tool {name}", True
        except KeyError as error:
            return f"{name} needs {error}", True
        except (ToolError, OSError, ValueError, re.error) as error:
            return f"{name}: {error}", True

    def _read(self, given: dict[str, Any]) -> str:
        lines = self._path(given["path"], self._readable).read_text(encoding="utf-8").splitlines(keepends=True)
        first, last = int(given.get("first") or 1), int(given.get("last") or len(lines))
        return "".join(lines[max(0, first - 1) : last])

    def _write(self, given: dict[str, Any]) -> str:
        path = self._path(given["path"], self._own)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(given["content"], encoding="utf-8")
        return f"{len(given['content'])} characters written to {path}"

    def _edit(self, given: dict[str, Any]) -> str:
        path = self._path(given["path"], self._own)
        text = path.read_text(encoding="utf-8")
        times = text.count(given["old"]) if given["old"] else 0
        if times != 1:
            raise ToolError(f"the old text stands {times} times in {path}; give one that stands there once")
        path.write_text(text.replace(given["old"], given["new"]), encoding="utf-8")
        return f"{path} is changed"

    def _search(self, given: dict[str, Any]) -> str:
        pattern = re.compile(given["pattern"])
        start = self._path(given.get("path") or str(self._workspace), self._readable)
        found: list[str] = []
        for path in [start] if start.is_file() else sorted(start.rglob("*")):
            for number, line in _lines(path):
                if pattern.search(line):
                    found.append(f"{path}:{number}: {line[:300]}")
            if len(found) >= FOUND:
                return shell.shown("\n".join([*found[:FOUND], "[further lines dropped]"]))
        return shell.shown("\n".join(found)) or "nothing found"

    def _path(self, given: str, folders: tuple[Path, ...]) -> Path:
        path = (self._workspace / given).resolve()
        if not any(path.is_relative_to(folder) for folder in folders):
            raise ToolError(f"{given} is outside of {', '.join(map(str, folders))}")
        return path


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 4 << 20:
            yield from enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    except (OSError, UnicodeDecodeError):
        return

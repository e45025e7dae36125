"""What was said in an attempt, one call a line, without secrets.

A line holds what is new in its request: all of it in a conversation's first call, then what came after the model's
last message. The whole request is named by digest and length.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: Anything of the shape of a key or token: the API's, ours, and what else people keep in repositories and files.
_SHAPES = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|farm-[A-Za-z0-9_-]{40,}"
    r"|gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|hf_[A-Za-z0-9]{30,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----"
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/-]{16,}=*",
    re.DOTALL,
)
REDACTED = "[redacted]"


def redacted(text: str, secrets: Sequence[str]) -> str:
    """A text without these secrets and without anything that looks like one."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, REDACTED)
    return _SHAPES.sub(REDACTED, text)


def new_in(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says that its conversation's earlier ones did not."""
    messages = request["messages"]
    last = max((place for place, each in enumerate(messages) if each["role"] == "assistant"), default=None)
    if last is None:
        return {name: value for name, value in request.items() if name not in ("stream", "model", "max_tokens")}
    return {"messages": messages[last + 1 :]}


def append(path: Path, line: Mapping[str, Any], secrets: Sequence[str]) -> None:
    """Add a line, in one piece. Raises OSError."""
    text = redacted(json.dumps(line, ensure_ascii=False, separators=(",", ":")), secrets)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (text + "\n").encode("utf-8", "backslashreplace"))
    finally:
        os.close(file)


def lines(path: Path) -> tuple[dict[str, Any], ...]:
    """All lines of a transcript; one that was cut by a crash is left out. None where there is no file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    found = []
    for line in text.split("\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return tuple(found)

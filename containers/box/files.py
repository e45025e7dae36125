"""The box's files: orders in, records out; every record is written whole or not at all."""

import json
import os
import time
from pathlib import Path
from typing import Any, TypeVar

from farm.codec import CodecError, decode, encode

T = TypeVar("T")


def write_json(path: Path, value: Any) -> None:
    """Write a record by rename, so that a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(encode(value), indent=1, sort_keys=True), encoding="utf-8")
    os.replace(partial, path)


def read_json(path: Path, kind: type[T]) -> T:
    """The record in a file. Raises CodecError naming the place, OSError when it cannot be read."""
    return parse_json(path.read_bytes(), kind)


def parse_json(data: bytes, kind: type[T]) -> T:
    """The record that JSON text describes. Raises CodecError when it is not one."""
    try:
        return decode(kind, json.loads(data))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CodecError(f"not JSON: {error}") from error


def append_event(out: Path, action: str, **fields: Any) -> None:
    """Append one event to events.jsonl."""
    line = json.dumps({"at": time.time(), "action": action, **encode(fields)}, sort_keys=True)
    with (out / "events.jsonl").open("a", encoding="utf-8") as events:
        events.write(line + "\n")

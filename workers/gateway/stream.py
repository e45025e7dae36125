"""An answer's stream, read while it goes by: is it whole, did it fail, what did it use. No byte is changed."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from farm.models import Tokens


class StreamError(NamedTuple):
    """An error event in a stream."""

    kind: str  #: the API's word, e.g. `overloaded_error`
    message: str


class Reading:
    """Reads server-sent events piece by piece."""

    def __init__(self) -> None:
        self.begun = False  #: usage was reported, so that it costs something
        self.whole = False  #: the message came to its end
        self.error: StreamError | None = None
        self.garbled = False  #: something was no event of the API
        self.message: dict[str, Any] = {}  #: what came so far, as one message
        self._usage: dict[str, Any] = {}
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            stripped = line.rstrip(b"\r")
            if stripped.startswith(b"data:"):
                self._data.append(stripped[5:].removeprefix(b" "))
            elif not stripped and self._data:
                self._event(b"\n".join(self._data))
                self._data = []

    @property
    def tokens(self) -> Tokens:
        """What it reported as used, up to now."""
        usage = self._usage
        parts = usage.get("cache_creation") or {}
        written, hour = _number(usage, "cache_creation_input_tokens"), _number(parts, "ephemeral_1h_input_tokens")
        return Tokens(
            input=_number(usage, "input_tokens"),
            # What the answer does not divide is the usual kind.
            cache_write_5m=max(_number(parts, "ephemeral_5m_input_tokens"), written - hour),
            cache_write_1h=hour,
            cache_read=_number(usage, "cache_read_input_tokens"),
            output=_number(usage, "output_tokens"),
        )

    def _event(self, data: bytes) -> None:
        try:
            event = json.loads(data)
            self._read(event)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            self.garbled = True

    def _read(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                self.message = dict(event["message"])
                self.message["content"] = []
                self._count(self.message.get("usage"))
                self.begun = True
            case "content_block_start":
                self.message["content"].append(dict(event["content_block"]))
            case "content_block_delta":
                _extend(self.message["content"][event["index"]], event["delta"])
            case "content_block_stop":
                block = self.message["content"][event["index"]]
                if "partial_json" in block:
                    block["input"] = json.loads(block.pop("partial_json") or "{}")
            case "message_delta":
                self.message.update(event["delta"])
                self._count(event.get("usage"))
            case "message_stop":
                self.whole = True
            case "error":
                self.error = StreamError(str(event["error"]["type"]), str(event["error"].get("message", "")))
            case _:
                pass  # ping, and what later versions of the API add

    def _count(self, usage: Any) -> None:
        """Later counts are totals, not additions; what they leave out stays."""
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})


def _extend(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    match delta["type"]:
        case "input_json_delta":
            block["partial_json"] = block.get("partial_json", "") + delta["partial_json"]
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case _:
            pass


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if type(value) is int and value > 0 else 0

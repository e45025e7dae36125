"""Tokens of a request by class, as prompt caching counts them: the server's own cache of prefixes.

A prefix runs over tools, system and messages in this order and ends at a block. Markers (`cache_control`) say
where one may be stored; a stored one is found again at a marker or up to twenty blocks before it. A token is four
bytes here: the counts are consistent with each other, not those of any model.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Bytes of JSON that count as one token.
BYTES_PER_TOKEN = 4
#: How far before a marker a stored prefix is looked for, blocks.
LOOK_BACK = 20
#: Life of a stored prefix, seconds, by what its marker says.
LIFE_S = {"5m": 300.0, "1h": 3600.0}


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Tokens of one request by class."""

    input: int  #: neither read from nor written to the cache
    write_5m: int  #: stored for five minutes
    write_1h: int  #: stored for an hour
    read: int  #: found in the cache

    @property
    def total(self) -> int:
        """All tokens of the prompt."""
        return self.input + self.write_5m + self.write_1h + self.read


@dataclass(frozen=True, kw_only=True)
class _Block:
    digest: str  # of everything up to and with this block
    tokens: int  # of everything up to and with this block
    ttl: str | None  # None: no marker here


class PrefixCache:
    """Remembers prefixes until their time is over; each use of one renews it."""

    def __init__(self, *, minimum_tokens: int) -> None:
        self._minimum = minimum_tokens
        self._until: dict[str, tuple[float, float]] = {}  # digest -> (until, life)

    def count(self, body: Mapping[str, Any], now: float) -> Counted:
        """The classes of a request's tokens; what its markers ask for is stored."""
        blocks = list(_prefixes(body))
        total = blocks[-1].tokens if blocks else 0
        marks = [place for place, block in enumerate(blocks) if block.ttl and block.tokens >= self._minimum]
        read_to = -1
        for mark in marks:
            for place in range(mark, max(-1, mark - LOOK_BACK - 1), -1):
                if self._until.get(blocks[place].digest, (0.0, 0.0))[0] > now:
                    read_to = max(read_to, place)
                    break
        read = blocks[read_to].tokens if read_to >= 0 else 0
        if read_to >= 0:
            life = self._until[blocks[read_to].digest][1]
            self._until[blocks[read_to].digest] = (now + life, life)
        written = {"5m": 0, "1h": 0}
        done = read
        for mark in marks:
            block = blocks[mark]
            if mark <= read_to:
                continue
            ttl = block.ttl or "5m"
            written[ttl] += block.tokens - done
            done = block.tokens
            self._until[block.digest] = (now + LIFE_S[ttl], LIFE_S[ttl])
        return Counted(input=total - done, write_5m=written["5m"], write_1h=written["1h"], read=read)


def tokens_of(value: Any) -> int:
    """Tokens of a JSON value, at least 1."""
    return max(1, -(-len(_canonical(value)) // BYTES_PER_TOKEN))


def _prefixes(body: Mapping[str, Any]) -> Iterator[_Block]:
    digest = hashlib.sha256(str(body.get("model")).encode())
    tokens = 0
    parts = list(_parts(body))
    for place, (role, part) in enumerate(parts):
        marker = part.get("cache_control") if isinstance(part, dict) else None
        if marker is None and place == len(parts) - 1:
            marker = body.get("cache_control")  # automatic caching marks the last block
        plain = {name: value for name, value in part.items() if name != "cache_control"} if marker else part
        digest.update(f"\0{role}\0".encode() + _canonical(plain))
        tokens += tokens_of(plain)
        ttl = (marker or {}).get("ttl", "5m") if marker else None
        yield _Block(digest=digest.copy().hexdigest(), tokens=tokens, ttl=ttl)


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for tool in body.get("tools") or ():
        yield "tool", tool
    for each in _blocks(body.get("system") or ()):
        yield "system", each
    for message in body.get("messages") or ():
        for each in _blocks(message["content"]):
            yield message["role"], each


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

"""Fingerprints of text: runs of tokens that a copy keeps through reformatting, and the words in a file.

Only runs that begin at an *anchor* are kept: an anchor is a word whose own digest says so, one in four,
so that two files choose the same runs without knowing of each other.
"""

import hashlib
import re
from collections.abc import Iterator

#: Tokens in a run.
RUN_TOKENS = 12
#: Bits of a run's fingerprint: leaves room for a file's number in 64.
RUN_BITS = 44

_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[^\sA-Za-z0-9_]")
#: Tokens about which a Fingerprinter remembers whether they are anchors; then it starts afresh.
_REMEMBERED = 1_000_000
_LONG_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{5,}")
_LENGTH = re.compile(rb"[0-9]{1,3}")
_MANGLED = (b"_ZN", b"_R", b"__ZN", b"ZN")


def digest64(data: bytes) -> int:
    """A 64-bit digest of bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def tokens_of(text: bytes) -> list[bytes]:
    """A text's words, numbers and signs, in order."""
    found: list[bytes] = _TOKEN.findall(text)
    return found


class _Anchors(dict[bytes, bool]):
    """Whether a token is an anchor, remembered."""

    def __missing__(self, token: bytes) -> bool:
        anchor = len(token) > 2 and not token.isdigit() and digest64(token) % 4 == 0
        self[token] = anchor
        return anchor


class Fingerprinter:
    """Finds the runs of many files; remembers which tokens are anchors."""

    def __init__(self) -> None:
        self._anchors = _Anchors()

    def runs(self, text: bytes) -> frozenset[int]:
        """Fingerprints of RUN_BITS bits of the runs that begin at an anchor."""
        return self.runs_of(tokens_of(text))

    def runs_of(self, tokens: list[bytes]) -> frozenset[int]:
        """The same for a text that has been cut into tokens."""
        if len(self._anchors) > _REMEMBERED:
            self._anchors.clear()
        anchors = self._anchors
        starts = [i for i, token in enumerate(tokens[: len(tokens) - RUN_TOKENS + 1]) if anchors[token]]
        shift = 64 - RUN_BITS
        return frozenset(digest64(b" ".join(tokens[i : i + RUN_TOKENS])) >> shift for i in starts)


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: a zero byte among the first 8192."""
    return b"\0" in data[:8192]


def words(data: bytes, tokens: list[bytes] | None = None) -> set[bytes]:
    """The distinct names in a file: identifiers, and in built libraries the parts of mangled symbols.

    `tokens` are those of a text, if it has been cut already.
    """
    if not is_binary(data):
        every = set(tokens_of(data) if tokens is None else tokens)
        return {word for word in every if len(word) >= 4 and not word[:1].isdigit()}
    found = set(_LONG_WORD.findall(data))
    found.update(part for word in tuple(found) if word.startswith(_MANGLED) for part in _demangled(word))
    return found


def _demangled(symbol: bytes) -> Iterator[bytes]:
    """The identifiers that a mangled symbol spells with their lengths before them."""
    at = 0
    while match := _LENGTH.search(symbol, at):
        size = int(match[0])
        part = symbol[match.end() : match.end() + size].lstrip(b"_")
        inside = 4 <= size <= len(symbol) - match.end()
        if inside:
            yield part
        at = match.end() + (size if inside else 0)


def has_word(data: bytes, name: bytes) -> bool:
    """Whether a file holds a name: as a whole word in text, anywhere in what is no text."""
    if name not in data:
        return False
    if is_binary(data):
        return True
    return re.search(rb"(?<![A-Za-z0-9_])" + re.escape(name) + rb"(?![A-Za-z0-9_])", data) is not None

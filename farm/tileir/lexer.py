"""Tile IR text to tokens."""

import re
from bisect import bisect_right
from enum import StrEnum
from typing import NamedTuple, NoReturn

from farm.errors import TileIRError
from farm.tileir.span import Span


class Kind(StrEnum):
    """What a token is."""

    VALUE = "value"  #: `%name`, `%name#1`
    ANGLE = "angle"  #: `name<...>`, closed
    BARE = "bare"  #: `<...>`, closed
    WORD = "word"  #: an identifier
    NUMBER = "number"  #: integer, float or hex
    STRING = "string"  #: `"..."`
    SYMBOL = "symbol"  #: `@name`
    ALIAS = "alias"  #: `#name`
    PUNCT = "punct"  #: one of `( ) [ ] { } , : = ? * ->`
    END = "end"  #: nothing follows


class Token(NamedTuple):
    """A piece of text and where it begins."""

    kind: Kind
    text: str
    offset: int  #: characters from the beginning


_FLAT = r"[^<>\n]*"
_NEST_1 = rf"<{_FLAT}>"
_NEST_2 = rf"<{_FLAT}(?:{_NEST_1}{_FLAT})*>"
_NEST_3 = rf"<{_FLAT}(?:{_NEST_2}{_FLAT})*>"
_NEST = rf"<{_FLAT}(?:{_NEST_3}{_FLAT})*>"
_TOKEN = re.compile(
    r"(?:\s+|//[^\n]*|(?m:^\#\w+ = [^\n]*))*(?:"
    r"(?P<value>%(?:[\w$.]|-(?!>))+(?:\#\d+)?)"
    rf"|(?P<angle>[A-Za-z_][\w.]*{_NEST})"
    rf"|(?P<bare>{_NEST})"
    r"|(?P<word>[A-Za-z_][\w.]*)"
    r"|(?P<number>[-+]?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r'|(?P<symbol>@(?:[\w$.]+|"(?:[^"\\]|\\.)*"))'
    r"|(?P<alias>\#[A-Za-z_]\w*)"
    r"|(?P<punct>->|[()\[\]{},:=?*])"
    r"|(?P<end>\Z))"
)
_KINDS = {kind.value: kind for kind in Kind}


class Text:
    """A Tile IR text that knows its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def span(self, offset: int) -> Span:
        """Line and column of a character."""
        line = bisect_right(self._starts, offset)
        return Span(line=line, column=offset - self._starts[line - 1] + 1)

    def fail(self, offset: int, message: str) -> NoReturn:
        """Raise TileIRError at a character, with its line and a caret."""
        span = self.span(offset)
        start = self._starts[span.line - 1]
        line = self.text[start:].split("\n", 1)[0]
        raise TileIRError(message, span.line, span.column, line)

    def tokens(self) -> list[Token]:
        """All tokens and an END; raises TileIRError where no token begins."""
        found: list[Token] = []
        after = 0
        for token in _TOKEN.finditer(self.text):
            group = token.lastgroup
            if token.start() != after or group is None:
                self.fail(_blank(self.text, after), "no Tile IR token begins here")
            found.append(Token(_KINDS[group], token[group], token.start(group)))
            after = token.end()
        return found


def _blank(text: str, offset: int) -> int:
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset

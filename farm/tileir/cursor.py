"""A position in a token list, and the small forms that every part of the grammar is made of."""

from farm.tileir.lexer import Kind, Text, Token
from farm.tileir.locations import Locations
from farm.tileir.model import Use, Value
from farm.tileir.span import Source, Span
from farm.tileir.types import Type, read_type

_TYPE_KINDS = (Kind.ANGLE, Kind.WORD)


class Cursor:
    """Reads tokens one after the other; every failure names its place."""

    def __init__(self, text: str) -> None:
        self.text = Text(text)
        self.tokens = self.text.tokens()
        self.at = 0
        self._locations = Locations(text)
        self._types: dict[str, Type] = {}

    @property
    def token(self) -> Token:
        """The next token, not taken."""
        return self.tokens[self.at]

    def ahead(self, distance: int = 1) -> Token:
        """A token further on, not taken."""
        return self.tokens[min(self.at + distance, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The next token."""
        token = self.tokens[self.at]
        if token.kind is not Kind.END:
            self.at += 1
        return token

    def fail(self, message: str) -> None:
        """Raise TileIRError at the next token."""
        self.text.fail(self.token.offset, message)

    def sees(self, text: str) -> bool:
        """Whether the next token is this keyword or punctuation."""
        return self.tokens[self.at].text == text

    def accept(self, text: str) -> bool:
        """Take the next token if it is this keyword or punctuation."""
        if self.tokens[self.at].text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> Token:
        """Take this keyword or punctuation."""
        if not self.sees(text):
            self.fail(f"expected `{text}`, found `{self.token.text or 'the end'}`")
        return self.take()

    def expect_kind(self, kind: Kind, what: str) -> Token:
        """Take a token of this kind."""
        if self.token.kind is not kind:
            self.fail(f"expected {what}, found `{self.token.text or 'the end'}`")
        return self.take()

    def span(self, token: Token) -> Span:
        """Where a token stands."""
        return self.text.span(token.offset)

    def use(self) -> Use:
        """A mention of a value."""
        token = self.expect_kind(Kind.VALUE, "a value")
        name, _, index = token.text[1:].partition("#")
        return Use(name=name, index=int(index) if index else None, span=self.span(token))

    def definition(self, type_: Type) -> Value:
        """A name that becomes a value of this type."""
        token = self.expect_kind(Kind.VALUE, "a value")
        return Value(name=token.text[1:], type=type_, span=self.span(token))

    def type(self) -> Type:
        """A type."""
        token = self.token
        if token.kind not in _TYPE_KINDS:
            self.fail(f"expected a type, found `{token.text or 'the end'}`")
        self.at += 1
        found = self._types.get(token.text)
        if found is None:
            found = self._types[token.text] = read_type(token.text)
        return found

    def types(self) -> tuple[Type, ...]:
        """Types with commas between them."""
        found = [self.type()]
        while self.accept(","):
            found.append(self.type())
        return tuple(found)

    def location(self) -> Source | None:
        """An optional `loc(...)`."""
        if not (self.sees("loc") and self.ahead().text == "("):
            return None
        start = self.take().offset
        depth = 0
        while True:
            token = self.take()
            depth += (token.text == "(") - (token.text == ")")
            if token.kind is Kind.END:
                self.fail("this location is not closed")
            if depth == 0:
                return self._locations.read(self.text.text[start : token.offset + 1])

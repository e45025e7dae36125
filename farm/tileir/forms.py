"""An operation's parts, read off its items once for all levels of a comparison."""

from typing import NamedTuple

from farm.tileir.constants import read_number
from farm.tileir.graph import Role
from farm.tileir.hints import hint_text
from farm.tileir.model import Item, Op, Use


class Form(NamedTuple):
    """What an operation says beside its results and types."""

    attrs: tuple[str, ...]  #: keywords, literal lists and `key=value`, in order
    uses: tuple[Use, ...]  #: operands, in order
    roles: tuple[Role, ...]  #: of the operands, as far as the syntax tells
    hint: str | None  #: text of its optimisation hints


class Forms:
    """Remembers the forms of operations that live as long as it does."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Op, Form]] = {}

    def of(self, op: Op) -> Form:
        """The form of an operation."""
        found = self._known.get(id(op))
        if found is None:
            found = self._known[id(op)] = (op, _form(op))
        return found[1]


def _form(op: Op) -> Form:
    attrs: list[str] = []
    uses: list[Use] = []
    roles: list[Role] = []
    hint: str | None = None
    for item in op.items:
        text = hint_text(item)
        if text is not None:
            hint = text
            continue
        found = [word for word in item.words if isinstance(word, Use)]
        uses += found
        roles += [_role(item)] * len(found)
        if len(found) < len(item.words) or (item.key is not None and item.bracketed):
            attrs.append(_attribute(item))
    return Form(tuple(attrs), tuple(uses), tuple(roles), hint)


def _role(item: Item) -> Role:
    match item.key:
        case "token":
            return Role.TOKEN
        case "shape":
            return Role.SHAPE
        case "strides":
            return Role.STRIDE
        case _:
            return Role.INDEX if item.bracketed else Role.OPERAND


def _attribute(item: Item) -> str:
    words = ",".join(_number(word) if isinstance(word, str) else "_" for word in item.words)
    text = f"[{words}]" if item.bracketed else words
    return f"{item.key}={text}" if item.key else text


def _number(word: str) -> str:
    value, colon, element = word.partition(" : ")
    return f"{read_number(element, value).value}:{element}" if colon else word

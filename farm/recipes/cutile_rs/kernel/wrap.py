"""Breaks over-long Rust lines as the language's formatter does, so that a maintainer sees no difference."""

import itertools
import re
import textwrap
from collections.abc import Iterator

WIDTH = 100
TAB = 4
#: The formatter's limits for what may stay on one line, characters.
MOST_ARGUMENTS = 60
MOST_CHAIN = 60
MOST_BRANCH = 50
MOST_FIELDS = 18
#: Names no longer than this share lines.
SHORT = 10

_OPENING, _CLOSING = "([{", ")]}"
_ASSIGNMENT = re.compile(r"((?:let )?[^=]*?[\w>)}\]]) = (.+);$")
_SIGNATURE = re.compile(r"((?:pub )?(?:unsafe )?fn \w+(?:<[^(]*>)?)\((.*)\)((?: -> .+)? \{)$")
_CALL = re.compile(r"[\w:]+(?:::<[^()]*>)?!?$")
_STRUCT = re.compile(r"([A-Z]\w*(?:::<.*?>)?) \{ (.+) \}$")
_SIMPLE = re.compile(r"[&!-]?[\w.]+$")
_BRANCH = re.compile(r"if (.+?) \{ (.+) \} else \{ (.+) \}$")


def wrapped(source: str) -> str:
    """The text with no line over 100 characters that the formatter would not leave."""
    return "".join(f"{line}\n" for text in source.splitlines() for line in _line(text))


def _line(text: str) -> list[str]:
    code = text.lstrip()
    indent = len(text) - len(code)
    if code.startswith("//"):
        return _comment(code, indent)
    if code.startswith(("#", "use ", "}")) or (code.endswith(("(", "{", "[", ",", "<")) and "fn " not in code):
        return [text]
    if signature := _SIGNATURE.match(code):
        return _signature(text, indent, *signature.groups())
    if assignment := _ASSIGNMENT.match(code):
        return _assigned(indent, assignment[1], assignment[2])
    tail = ";" if code.endswith(";") else ""
    return _placed(indent, "", code.removesuffix(";"), tail)


def _comment(code: str, indent: int) -> list[str]:
    if indent + len(code) <= WIDTH:
        return [" " * indent + code]
    mark, _, words = code.partition(" ")
    hanging = "    " if words.startswith("  * ") else ""
    lead = words[: len(words) - len(words.lstrip())]
    lines = textwrap.wrap(words.strip(), WIDTH - indent - len(mark) - 1 - len(lead) - len(hanging))
    pads = [lead, *[lead + hanging[: max(0, 4 - len(lead))]] * (len(lines) - 1)]
    return [f"{' ' * indent}{mark} {pad}{line}" for pad, line in zip(pads, lines, strict=True)]


def _signature(text: str, indent: int, head: str, params: str, tail: str) -> list[str]:
    if len(text) <= WIDTH:
        return [text]
    pad = " " * indent
    return [f"{pad}{head}(", *(f"{pad}    {param}," for param in split(params, ", ")), f"{pad}){tail}"]


def _assigned(indent: int, head: str, value: str) -> list[str]:
    pad = " " * indent
    whole = f"{pad}{head} = {value};"
    if len(whole) <= WIDTH and not crowded(value):
        return [whole]
    below = f"{pad}    {value};"
    if len(below) <= WIDTH and not crowded(value):
        return [f"{pad}{head} =", below]
    return _placed(indent, f"{head} = ", value, ";")


def _placed(indent: int, before: str, value: str, after: str) -> list[str]:
    """Lines for an expression, with what stands before it on its first line and after it on its last."""
    pad = " " * indent
    whole = f"{pad}{before}{value}{after}"
    if len(whole) <= WIDTH and not crowded(value):
        return [whole]
    if branch := _BRANCH.match(value):
        condition, then, other = branch.groups()
        inner = [*_placed(indent + TAB, "", then, ""), f"{pad}}} else {{", *_placed(indent + TAB, "", other, "")]
        return [f"{pad}{before}if {condition} {{", *inner, f"{pad}}}{after}"]
    if value.startswith("unsafe { ") and value.endswith(" }"):
        inner = _placed(indent + TAB, "", value[len("unsafe { ") : -2], "")
        return [f"{pad}{before}unsafe {{", *inner, f"{pad}}}{after}"]
    if struct := _STRUCT.match(value):
        fields = [line for field in split(struct[2], ", ") for line in _placed(indent + TAB, "", field, ",")]
        return [f"{pad}{before}{struct[1]} {{", *fields, f"{pad}}}{after}"]
    links = chain(value)
    if len(links) > 2:
        if len(links[0]) <= TAB:
            links[:2] = [links[0] + links[1]]
        lines = [f"{pad}{before}{links[0]}", *(f"{pad}    {link}" for link in links[1:])]
        lines[-1] += after
        return lines
    if call := called(value):
        return _call(indent, before, call, after)
    for signs in (" | ", " ^ ", " & ", " + ", " - ", " * ", " / "):
        operands = split(value, signs)
        if len(operands) > 1:
            lines = [f"{pad}{before}{operands[0]}", *(f"{pad}    {signs.strip()} {part}" for part in operands[1:])]
            lines[-1] += after
            return lines
    return [whole]


def _call(indent: int, before: str, call: tuple[str, str, str], after: str) -> list[str]:
    head, inside, close = call
    pad = " " * indent
    arguments = split(inside, ", ")
    inner = called(arguments[0]) if len(arguments) == 1 else None
    if inner is not None and inner[2] == ")":
        return _placed(indent, f"{before}{head}", arguments[0], f"{close}{after}")
    if all(len(argument) <= SHORT and _SIMPLE.match(argument) for argument in arguments):
        inner_pad = f"{pad}{' ' * TAB}"
        lines = textwrap.wrap(
            f"{', '.join(arguments)},", WIDTH, initial_indent=inner_pad, subsequent_indent=inner_pad
        )
    else:
        lines = [line for argument in arguments for line in _placed(indent + TAB, "", argument, ",")]
    return [f"{pad}{before}{head}", *lines, f"{pad}{close}{after}"]


def crowded(text: str) -> bool:
    """Whether the formatter breaks an expression although it fits on a line."""
    if branch := _BRANCH.match(text):
        return len(text) > MOST_BRANCH or any(crowded(part) for part in branch.groups())
    if text.startswith("unsafe { ") and text.endswith(" }"):
        return crowded(text[len("unsafe { ") : -2])
    if struct := _STRUCT.match(text):
        return len(struct[2]) > MOST_FIELDS
    links = chain(text)
    if len(links) > 2 and len(text) > MOST_CHAIN:
        return True
    if call := called(text):
        return len(call[1]) > MOST_ARGUMENTS or any(crowded(part) for part in split(call[1], ", "))
    return False


def called(text: str) -> tuple[str, str, str] | None:
    """An expression that is one call: up to its bracket, what is inside, the closing bracket."""
    if not text or text[-1] not in ")]" or text[0] in _OPENING:
        return None
    for place, depth in _depths(text):
        if depth == 1 and text[place] in _OPENING:
            head = text[:place].lstrip("&")
            alone = next((at for at, d in _depths(text) if at > place and d == 0), None) == len(text) - 1
            named = _CALL.match(head.rpartition(".")[2]) is not None and " " not in head.split("::<")[0]
            return (text[: place + 1], text[place + 1 : -1], text[-1]) if alone and named else None
    return None


def chain(text: str) -> list[str]:
    """The links of `a.b(..).c(..)`: `a`, `.b(..)`, `.c(..)`; the whole text where it is no chain."""
    if len(split(text, " ")) > 1:
        return [text]
    places = [
        at
        for at, depth in _depths(text)
        if depth == 0 and text[at] == "." and re.match(r"\.[a-z]\w*\(", text[at:])
    ]
    bounds = [0, *places, len(text)]
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


def split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that no bracket encloses."""
    parts, start = [], 0
    for at, depth in _depths(text):
        if depth == 0 and at >= start and text.startswith(separator, at):
            parts.append(text[start:at])
            start = at + len(separator)
    return [*parts, text[start:]]


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Every place of a text with the number of brackets open after it; `<` counts in types."""
    depth, angles = 0, 0
    for at, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "<" and at and (text[at - 1].isalnum() or text[at - 1] == ":"):
            angles += 1
        elif character == ">" and angles and text[at - 1] != "-":
            angles -= 1
        yield at, depth + angles

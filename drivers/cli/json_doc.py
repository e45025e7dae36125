"""docs/cli-json.md from the documents' dataclasses: `python -m drivers.cli.json_doc > docs/cli-json.md`."""

import dataclasses
import enum
import inspect
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from farm.views import DOCUMENTS, SCHEMA

_COMMENT = re.compile(r"^\s+(\w+)\s*[:=].*?#:\s*(.+?)\s*$", re.MULTILINE)

_HEAD = f"""\
# What `--json` prints

Every command takes `--json` and then prints one JSON document on stdout, nothing else; messages go to
stderr. `kind` tells the documents apart. `schema` is {SCHEMA}: within one version fields are only added, so
ignore those that you do not know. A command that cannot do its work prints the document `error` and ends with
its `exit_code`.

This page is generated from `farm/views.py` by `python -m drivers.cli.json_doc`.
"""

#: What needs no comment at each place.
_COMMON = {"kind": "names the document", "schema": "version of the format"}


def markdown() -> str:
    """The whole page."""
    parts: list[type] = []
    for document in DOCUMENTS:
        _collect(document, parts)
    lines = [_HEAD, "## Documents", ""]
    for document in DOCUMENTS:
        lines += _describe(document, f"`{_kind(document)}`")
    lines += ["## Parts", ""]
    for part in sorted(parts, key=lambda p: p.__name__):
        if part not in DOCUMENTS:
            lines += _describe(part, part.__name__)
    return "\n".join(lines).rstrip() + "\n"


def _kind(document: type) -> str:
    return str(get_args(get_type_hints(document)["kind"])[0])


def _collect(cls: Any, found: list[type]) -> None:
    """Dataclasses and enums that are reachable from `cls`, in the order of their first use."""
    for inner in get_args(cls):
        _collect(inner, found)
    if not isinstance(cls, type) or cls in found:
        return
    if dataclasses.is_dataclass(cls):
        found.append(cls)
        for hint in get_type_hints(cls).values():
            _collect(hint, found)
    elif issubclass(cls, enum.Enum):
        found.append(cls)


def _describe(cls: Any, title: str) -> Iterator[str]:
    comments = dict(_COMMENT.findall(inspect.getsource(cls)))
    yield from (f"### {title}", "", (inspect.getdoc(cls) or "").splitlines()[0], "")
    if issubclass(cls, enum.Enum):
        yield from ("| value | meaning |", "|---|---|")
        for member in cls:
            yield f"| `{member.value}` | {_cell(comments.get(member.name, ''))} |"
    else:
        yield from ("| field | type | meaning |", "|---|---|---|")
        hints = get_type_hints(cls)
        for field in dataclasses.fields(cls):
            meaning = comments.get(field.name) or _COMMON.get(field.name, "")
            yield f"| `{field.name}` | {_type(hints[field.name])} | {_cell(meaning)} |"
    yield ""


def _type(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(arg) for arg in args)
    if origin is Literal:
        return " or ".join(f'`"{arg}"`' for arg in args)
    if origin is tuple:
        return f"list of {_type(args[0])}"
    if origin is dict:
        return f"object of {_type(args[1])}"
    if hint is type(None):
        return "null"
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return names.get(hint) or f"[{hint.__name__}](#{_anchor(hint)})"


def _anchor(cls: type) -> str:
    return _kind(cls) if cls in DOCUMENTS else cls.__name__.lower()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())

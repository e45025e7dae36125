"""Python source as a syntax tree with byte spans, and edits that keep every other byte."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from farm.errors import UnreadableFile
from farm.tree import Mode, Tree

#: What to do about a file that is not Python.
CORRECT = "correct the file and commit it, or name a revision by --base in which it is Python"


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Replace the bytes from `start` up to `end`."""

    start: int
    end: int
    text: bytes = b""


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes after all edits; an edit inside another one's span is dropped with it."""
    out, at = [], 0
    for edit in sorted(edits, key=lambda e: (e.start, -e.end)):
        if edit.start < at:
            continue
        out += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join((*out, data[at:]))


class Source:
    """A parsed Python file."""

    def __init__(self, path: str, data: bytes) -> None:
        """Parse it. Raises UnreadableFile when it is not Python."""
        self.path = path
        self.data = data
        try:
            self.tree = ast.parse(data, filename=path)
        except SyntaxError as error:
            place = (error.lineno or 1, max(1, error.offset or 1))
            raise UnreadableFile(path, *place, f"not readable as Python: {error.msg}", CORRECT) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise UnreadableFile(path, 1, 1, f"not readable as Python: {error or 'too deep'}", CORRECT) from error

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Byte offset of each line, and of the end."""
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return tuple(starts)

    @property
    def newline(self) -> bytes:
        """The line ending that the file uses."""
        return b"\r\n" if b"\r\n" in self.data else b"\n"

    def start(self, node: ast.AST) -> int:
        """Byte offset of the node's first character; decorators belong to their function or class."""
        line, column = _place(node)
        for decorator in getattr(node, "decorator_list", ()):
            if decorator.lineno <= line:
                at = self.line_starts[decorator.lineno - 1]
                line, column = decorator.lineno, self.data.rindex(b"@", at, at + decorator.col_offset) - at
                break
        return self.line_starts[line - 1] + column

    def end(self, node: ast.AST) -> int:
        """Byte offset behind the node's last character."""
        line, column = _place(node, "end_")
        return self.line_starts[line - 1] + column

    def text(self, node: ast.AST) -> str:
        """The node's own text."""
        return self.data[self.start(node) : self.end(node)].decode("utf-8", "surrogateescape")

    def line_start(self, offset: int) -> int:
        """Offset of the first byte of the line that holds `offset`."""
        return self.data.rfind(b"\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """Offset behind the line ending of the line that holds `offset`."""
        found = self.data.find(b"\n", offset)
        return len(self.data) if found < 0 else found + 1

    def lines(self, node: ast.AST) -> Edit:
        """An edit that removes the whole lines of a statement, its trailing comment included."""
        return Edit(start=self.line_start(self.start(node)), end=self.line_end(self.end(node)))

    def indent(self, node: ast.AST) -> bytes:
        """The white space before the node on its first line."""
        start = self.start(node)
        before = self.data[self.line_start(start) : start]
        return before if not before.strip() else before[: len(before) - len(before.lstrip())]


def _place(node: ast.AST, prefix: str = "") -> tuple[int, int]:
    line, column = getattr(node, f"{prefix}lineno"), getattr(node, f"{prefix}col_offset")
    if not isinstance(line, int) or not isinstance(column, int):
        raise TypeError(f"a {type(node).__name__} has no place in its file")
    return line, column


def read_source(tree: Tree, path: str) -> Source:
    """A file of a tree, parsed. Raises UnreadableFile when it is missing, a link, or not Python."""
    if path not in tree:
        raise UnreadableFile(path, 1, 1, "the repository has no such file", "check --repo and --base")
    if tree[path].mode is Mode.LINK:
        advice = "put the file in its place, or name another revision by --base"
        raise UnreadableFile(path, 1, 1, "is a symbolic link, the recipe wants a file there", advice)
    return Source(path, tree[path].data)


def bodies(root: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements under a node, the outer ones first."""
    for node in ast.walk(root):
        for name in ("body", "orelse", "finalbody"):
            value = getattr(node, name, None)
            if isinstance(value, list) and value:
                yield value


class Imports:
    """What the names of a file stand for, by its import statements at any depth."""

    def __init__(self, source: Source, module: str, *, is_package: bool) -> None:
        """Read them. `module` is the file's import name, which relative imports start from."""
        self.names: dict[str, str] = {}
        parts = module.split(".") if is_package else module.split(".")[:-1]
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.split(".")[0]
                    self.names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                base = parts[: len(parts) - node.level + 1] if node.level else []
                prefix = ".".join((*base, *([node.module] if node.module else [])))
                for alias in node.names:
                    self.names[alias.asname or alias.name] = f"{prefix}.{alias.name}"

    def dotted(self, node: ast.AST) -> str | None:
        """The full dotted name of an expression such as `ct.launch`, or None when it has none."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None


def string(node: ast.AST | None) -> str | None:
    """The value of a string literal, else None."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """A call's argument by position or keyword."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if len(call.args) > position else None

"""The registration lines of a target implementation: one import in Python, one module in Rust.

Additions and removals are inverse to each other, idempotent, and keep every other byte, so that the
same functions make the bare base, the host code and a merge of accepted ops.
"""

import ast
import posixpath
from collections.abc import Iterator, Sequence

from farm.layout import Package
from farm.recipes.cutile_rs import rust
from farm.recipes.cutile_rs.syntax import Edit, Source, apply_edits, bodies, string

_NOQA = "  # noqa: F401"


def imported_ops(source: Source) -> tuple[str, ...]:
    """The sibling modules that a registration file imports, in order."""
    return tuple(
        name for node in ast.walk(source.tree) if isinstance(node, ast.ImportFrom) for name in _siblings(node)
    )


def _siblings(node: ast.stmt) -> tuple[str, ...]:
    if not isinstance(node, ast.ImportFrom) or node.level != 1:
        return ()
    if node.module is not None:
        return (node.module.split(".")[0],)
    return tuple(alias.name for alias in node.names)


def add_import(source: Source, op: str, target: str) -> bytes:
    """The registration file with `from . import <op>` in its sorted place."""
    if op in imported_ops(source):
        return source.data
    newline = source.newline.decode()
    body, guard = _import_body(source, target)
    imports = [node for node in body if isinstance(node, ast.ImportFrom) and _siblings(node)]
    if imports:
        after = [node for node in imports if _siblings(node)[-1] < op]
        near = after[-1] if after else imports[0]
        line = f"{source.indent(near).decode()}from . import {op}{_comment(source, near)}{newline}"
        lines = source.lines(near)
        return _insert(source, lines.end if after else lines.start, line)
    if not body:
        return _insert(source, len(source.data), f"from . import {op}{_NOQA}{newline}")
    indent = source.indent(body[0]).decode()
    line = f"{indent}from . import {op}{_NOQA}{newline}"
    if guard and len(body) == 1 and isinstance(body[0], ast.Pass):
        lines = source.lines(body[0])
        return apply_edits(source.data, [Edit(start=lines.start, end=lines.end, text=line.encode())])
    return _insert(source, source.lines(body[-1]).end, line)


def _import_body(source: Source, target: str) -> tuple[list[ast.stmt], bool]:
    """The statements among which an op's import belongs, and whether they stand under a condition."""
    lists = [body for body in bodies(source.tree) if any(_siblings(node) for node in body)]
    if lists:
        best = max(lists, key=lambda body: sum(bool(_siblings(node)) for node in body))
        return best, best is not source.tree.body
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If) and any(string(item) == target for item in ast.walk(node.test)):
            return node.body, True
    return source.tree.body, False


def _comment(source: Source, near: ast.ImportFrom) -> str:
    rest = source.data[source.end(near) : source.lines(near).end].decode("utf-8", "surrogateescape").rstrip()
    return rest if "#" in rest and not any(name in rest for name in _siblings(near)) else _NOQA


def _insert(source: Source, at: int, line: str) -> bytes:
    lead = b"" if at == 0 or source.data[at - 1 : at] == b"\n" else source.newline
    return apply_edits(source.data, [Edit(start=at, end=at, text=lead + line.encode())])


def remove_import(source: Source, op: str) -> bytes:
    """The registration file without the import of the op; an emptied block holds `pass`."""
    edits = []
    for body in bodies(source.tree):
        dead = [node for node in body if _siblings(node) == (op,)]
        for node in dead:
            lines = source.lines(node)
            text = b""
            if len(dead) == len(body) and node is dead[0] and body is not source.tree.body:
                text = source.indent(node) + b"pass" + source.newline
            edits.append(Edit(start=lines.start, end=lines.end, text=text))
        for node in body:
            if isinstance(node, ast.ImportFrom) and len(_siblings(node)) > 1 and op in _siblings(node):
                gone = [index for index, alias in enumerate(node.names) if alias.name == op]
                edits.extend(drop_elements(source, node.names, gone))
    return apply_edits(source.data, edits)


def drop_elements(
    source: Source, elements: Sequence[ast.alias] | Sequence[ast.expr], gone: Sequence[int]
) -> Iterator[Edit]:
    """Edits that take some, not all, elements out of a comma-separated list."""
    last_kept = max(index for index in range(len(elements)) if index not in gone)
    for index in gone:
        if index < last_kept:
            yield Edit(start=source.start(elements[index]), end=source.start(elements[index + 1]))
    if last_kept + 1 < len(elements):
        yield Edit(start=source.end(elements[last_kept]), end=source.end(elements[-1]))


def declared_modules(data: bytes) -> tuple[str, ...]:
    """The inline modules that a Rust file declares, in order."""
    return tuple(name for name, _ in rust.modules(_rust_text(data)))


def add_module(data: bytes, op: str, package: Package) -> bytes:
    """The Rust file with `mod <op> { .. }` appended, which includes the op's two files."""
    if op in declared_modules(data):
        return data
    here = posixpath.dirname(package.path(package.layout.modules))
    folder = posixpath.relpath(f"{package.target_folder}/{op}_kernel", here)
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    names = [f'    include!("{folder}/{name}");' for name in ("kernel.rs", "ffi.rs")]
    block = newline.join(line.encode() for line in (f"mod {op} {{", *names, "}"))
    if not data:
        return block + newline
    if not data.endswith(b"\n"):
        return data + newline * 2 + block
    return data + newline + block + newline


def remove_module(data: bytes, op: str) -> bytes:
    """The Rust file without `mod <op> { .. }` and the blank line that set it off."""
    text = _rust_text(data)
    for name, span in rust.modules(text):
        if name == op:
            before, after = text[: span.start], text[span.end :]
            if not after and not text.endswith("\n"):
                before = before.rstrip("\r\n")
            elif before.endswith(("\n\n", "\n\r\n")):
                before = before.removesuffix("\n").removesuffix("\r")
            elif not before:
                after = after.removeprefix("\r").removeprefix("\n")
            return (before + after).encode("utf-8", "surrogateescape")
    return data


def _rust_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")

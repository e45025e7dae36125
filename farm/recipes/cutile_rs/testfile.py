"""The target backend as one more parameter of an op's tests, in the way that the other backends are there."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from farm.layout import Package
from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.inventory import file_imports
from farm.recipes.cutile_rs.rows import Parametrization, parametrizations
from farm.recipes.cutile_rs.syntax import Edit, Source, apply_edits, argument, string

AVAILABLE = "is_backend_available"
Scopes = tuple[list[ast.stmt], ...]
Literal = ast.List | ast.Tuple


@dataclass(frozen=True, kw_only=True)
class TestEdit:
    """A test file with the target backend among its parameters."""

    data: bytes
    findings: tuple[Finding, ...]  #: parametrisations whose list of backends was not found


@dataclass(frozen=True)
class _Named:
    """A list of backends that has a name."""

    name: str
    body: list[ast.stmt]
    literal: Literal


def add_backend(source: Source, package: Package) -> TestEdit:
    """The test file in which every list of backends also holds the target, where that is available."""
    adder = _Adder(source, package)
    findings = tuple(adder.collect())
    return TestEdit(data=apply_edits(source.data, adder.edits.values()), findings=findings)


class _Adder:
    """Collects the edits of one file, each place once."""

    def __init__(self, source: Source, package: Package) -> None:
        self.source = source
        self.package = package
        self.layout = package.layout
        self.edits: dict[tuple[str, int], Edit] = {}

    def collect(self) -> Iterator[Finding]:
        """Fill `edits`; yields a finding for each parametrisation without a known list."""
        module = self.source.tree.body
        for node in module:
            yield from self._decorated(node, (module,))
            for item in node.body if isinstance(node, ast.ClassDef) else ():
                yield from self._decorated(item, (node.body, module))  # type: ignore[attr-defined]

    def _decorated(self, node: ast.stmt, scopes: Scopes) -> Iterator[Finding]:
        decorators = getattr(node, "decorator_list", [])
        marks = [mark for mark in parametrizations(decorators) if "backend" in mark.names]
        if getattr(node, "name", "") == "backend":
            marks += [Parametrization(names=("backend",), values=value) for value in _params(decorators)]
        for mark in marks:
            if not self._add(mark, scopes):
                yield self._finding(mark)

    def _add(self, mark: Parametrization, scopes: Scopes) -> bool:
        found = list(self._lists(mark.values, scopes, frozenset()))
        if len(mark.names) > 1 and isinstance(mark.values, (ast.List, ast.Tuple)):
            found = [item for item in found if isinstance(item, _Named)]
        for item in found:
            if isinstance(item, _Named):
                self._extend_named(item)
            else:
                self._extend_literal(item)
        return bool(found)

    def _lists(self, node: ast.expr, scopes: Scopes, seen: frozenset[str]) -> Iterator[_Named | Literal]:
        """The lists of backends that an expression is made from."""
        for part in ast.walk(node):
            if isinstance(part, (ast.List, ast.Tuple)) and self._is_backends(part):
                yield part
            elif isinstance(part, ast.Name) and part.id not in seen:
                yield from self._named(part.id, scopes, seen | {part.id})

    def _named(self, name: str, scopes: Scopes, seen: frozenset[str]) -> Iterator[_Named | Literal]:
        for depth, body in enumerate(scopes):
            values = [value for statement in body for value in _bound(statement, name)]
            for value in values:
                for found in self._lists(value, scopes[depth:], seen):
                    yield _Named(name, body, found) if not isinstance(found, _Named) else found
            if values:
                return

    def _is_backends(self, node: Literal) -> bool:
        return any(string(item) == self.layout.source for item in map(_param_value, node.elts))

    def _extend_literal(self, node: Literal) -> None:
        if any(string(_param_value(item)) == self.layout.target for item in node.elts):
            return
        at = self.source.end(node.elts[-1])
        self.edits["literal", at] = Edit(start=at, end=at, text=f', "{self.layout.target}"'.encode())

    def _extend_named(self, item: _Named) -> None:
        binding = [node for node in item.body if any(True for _ in _bound(node, item.name))]
        if any(string(part) == self.layout.target for node in binding for part in ast.walk(node)):
            return
        indent, newline = self.source.indent(binding[0]).decode(), self.source.newline.decode()
        element = (
            f'["{self.layout.target}"]' if isinstance(item.literal, ast.List) else f'("{self.layout.target}",)'
        )
        lines = (
            f'{indent}if {self._available()}("{self.layout.target}"):',
            f"{indent}    {item.name} = {item.name} + {element}",
        )
        at = self.source.lines(binding[-1]).end
        lead = "" if self.source.data[at - 1 : at] == b"\n" else newline
        text = lead + "".join(line + newline for line in lines)
        self.edits[item.name, at] = Edit(start=at, end=at, text=text.encode())

    def _available(self) -> str:
        """How this file asks whether a backend is available; adds the import when it does not."""
        for name, dotted in file_imports(self.source, self.package).names.items():
            if dotted.rsplit(".", 1)[-1] == AVAILABLE:
                return name
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Attribute) and node.attr == AVAILABLE:
                return self.source.text(node)
        body = self.source.tree.body
        imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
        own = [node for node in imports if self.package.name in ast.unparse(node).split(".")[0].split()]
        at = self.source.lines((own or imports)[-1]).end if imports else 0
        text = f"from {self.package.name}.backend import {AVAILABLE}{self.source.newline.decode()}"
        self.edits["import", at] = Edit(start=at, end=at, text=text.encode())
        return AVAILABLE

    def _finding(self, mark: Parametrization) -> Finding:
        return Finding(
            file=self.source.path,
            line=mark.values.lineno,
            column=mark.values.col_offset + 1,
            construct=self.source.text(mark.values),
            message=f"no list that holds {self.layout.source!r} stands behind this parametrisation",
            advice=f'name the list: `_backends = ["{self.layout.source}"]`, and parametrise by that name',
        )


def _params(decorators: list[ast.expr]) -> Iterator[ast.expr]:
    for call in decorators:
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("fixture"):
            params = argument(call, 99, "params")
            if params is not None:
                yield params


def _param_value(node: ast.expr) -> ast.expr:
    is_param = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("param") and node.args
    return node.args[0] if is_param and isinstance(node, ast.Call) else node


def _bound(statement: ast.stmt, name: str) -> Iterator[ast.expr]:
    """The values that a statement (not a definition) assigns to a name."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for node in ast.walk(statement):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield node.value

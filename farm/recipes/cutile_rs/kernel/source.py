"""The source text of an op: its files, what a name in one of them means, and the kernels in it."""

import ast
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farm.analysis import KernelSource
from farm.recipes.cutile_rs.kernel.model import Api, Function
from farm.recipes.cutile_rs.kernel.refusal import Refusal

#: Python modules whose names the translator knows.
KNOWN_MODULES = ("math", "torch", "operator", "numpy")


@dataclass(frozen=True)
class PyModule:
    """An imported Python module whose names are known: `math`, `torch`."""

    name: str


@dataclass(frozen=True)
class Assigned:
    """A module-level constant, evaluated when it is used."""

    value: ast.expr
    path: str


@dataclass(frozen=True)
class Imported:
    """A name from a sibling file."""

    path: str
    name: str


@dataclass
class Scope:
    """What a file's module-level names stand for."""

    path: str
    text: str
    tree: ast.Module
    names: dict[str, Any] = field(default_factory=dict)


class Sources:
    """All files of an op, parsed on demand."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._scopes: dict[str, Scope] = {}

    def text(self, path: str) -> str:
        """Content of the file `path`."""
        return self._files[path]

    def scope(self, path: str) -> Scope:
        """The names of the file `path`. Raises KeyError when it is not there, SyntaxError when not Python."""
        if path not in self._scopes:
            text = self._files[path]
            scope = Scope(path, text, ast.parse(text))
            for statement in scope.tree.body:
                self._bind(scope, statement)
            self._scopes[path] = scope
        return self._scopes[path]

    def kernel(self, source: KernelSource) -> ast.FunctionDef:
        """The kernel's definition. Raises Refusal when it is not in its file."""
        scope = self.scope(source.file)
        found = [
            node
            for node in ast.walk(scope.tree)
            if isinstance(node, ast.FunctionDef) and node.name == source.function
        ]
        near = [n for n in found if n.lineno == source.line or source.line in _header(n)]
        for node in near or found:
            return node
        raise Refusal(
            scope.tree,
            f"{source.file} has no function {source.function}",
            "analyse the op again: the analysis belongs to another version of the file",
        )

    def lookup(self, path: str, name: str) -> Any:
        """What `name` means at the top of the file `path`; None when it is not bound there."""
        value = self.scope(path).names.get(name)
        if isinstance(value, Imported):
            if value.path not in self._files:
                return None
            return self.lookup(value.path, value.name)
        return value

    def _bind(self, scope: Scope, statement: ast.stmt) -> None:
        match statement:
            case ast.Import():
                for alias in statement.names:
                    target = alias.asname or alias.name.split(".")[0]
                    if alias.name == "cuda.tile":
                        scope.names[target] = Api("") if alias.asname else PyModule("cuda")
                    else:
                        scope.names[target] = PyModule(alias.name if alias.asname else target)
            case ast.ImportFrom():
                for alias in statement.names:
                    scope.names[alias.asname or alias.name] = self._imported(scope.path, statement, alias.name)
            case ast.FunctionDef():
                scope.names[statement.name] = Function(statement, scope.path)
            case ast.Assign(targets=[ast.Name(id=name)]):
                scope.names[name] = Assigned(statement.value, scope.path)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                scope.names[name] = Assigned(value, scope.path)
            case ast.If() | ast.Try():
                for inner in statement.body:
                    self._bind(scope, inner)
            case _:
                pass

    def _imported(self, path: str, statement: ast.ImportFrom, name: str) -> Any:
        module = statement.module or ""
        if module == "cuda.tile":
            return Api(name)
        if module == "cuda" and name == "tile":
            return Api("")
        if not statement.level and module in KNOWN_MODULES:
            return PyModule(f"{module}.{name}")
        if statement.level:
            folder = posixpath.dirname(path)
            for _ in range(statement.level - 1):
                folder = posixpath.dirname(folder)
            base = posixpath.join(folder, *module.split(".")) if module else folder
            return self._in_files((base,), name)
        tail = module.replace(".", "/")
        bases = tuple(
            file[: file.index(tail) + len(tail)]
            for file in self._files
            if f"/{tail}." in f"/{file}" or f"/{tail}/" in f"/{file}"
        )
        return self._in_files(bases, name)

    def _in_files(self, bases: tuple[str, ...], name: str) -> Any:
        for base in bases:
            for candidate in (f"{base}.py", f"{base}/__init__.py", f"{base}/{name}.py"):
                if candidate in self._files:
                    return Imported(candidate, name)
        return None


def _header(node: ast.FunctionDef) -> range:
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return range(first, node.body[0].lineno + 1)

"""The Python wrapper of an op: the reference's host code with its launches sent to the C library."""

import ast
import symtable
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.layout import Package
from farm.op import Op
from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.host.exports import Export
from farm.recipes.cutile_rs.host.imports import import_block, single_line
from farm.recipes.cutile_rs.host.launcher import CONSTANTS, HELPERS, Words, constants, fresh, launcher
from farm.recipes.cutile_rs.host.module import LANGUAGE, HostModule, HostModules, Imported
from farm.recipes.cutile_rs.host.rewrite import Naming, Rewritten, rewrite
from farm.recipes.cutile_rs.inventory import file_imports
from farm.recipes.cutile_rs.syntax import argument, read_source, string
from farm.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Wrapper:
    """The text of the wrapper, and what could not be written."""

    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class _Chunk:
    """A top-level statement of the result."""

    order: tuple[int, int]  #: file in order of need, then offset in it
    text: str  #: with the comments above it
    is_definition: bool  #: function or class
    near: bool  #: stood directly below its predecessor


def write_wrapper(op: Op, tree: Tree, package: Package, exports: Sequence[Export]) -> Wrapper:
    """The wrapper of an op. Raises RepositoryError when a file it needs is missing or not Python."""
    return _Writer(op, tree, package, exports).write()


class _Writer:
    def __init__(self, op: Op, tree: Tree, package: Package, exports: Sequence[Export]) -> None:
        self.op = op
        self.tree = tree
        self.package = package
        self.modules = HostModules(tree, package)
        self.main = self.modules.get(op.source_files[0])
        self.helper_path = package.path(package.layout.helpers)
        self.helpers = self._helper_names()
        self.by_kernel: dict[tuple[str, str], list[Export]] = {}
        for export in exports:
            self.by_kernel.setdefault((export.kernel.file, export.kernel.function), []).append(export)
        taken = {name for path in op.source_files for name in self._all_names(self.modules.get(path))}
        self.naming = Naming(
            launchers={key: _launcher(items[0], taken) for key, items in self.by_kernel.items()},
            ceil_div=fresh("_cdiv", taken),
            source=package.layout.source,
            target=package.layout.target,
        )
        self.names = {name: fresh(name, taken) for name in CONSTANTS}
        self.files: list[HostModule] = []
        self.chunks: dict[tuple[str, int], _Chunk] = {}
        self.owners: dict[str, HostModule] = {}
        self.imported: dict[str, Imported] = {}
        self.launched: set[str] = set()
        self.uses_ceil_div = False
        self.findings: list[Finding] = []

    def _helper_names(self) -> frozenset[str]:
        source = read_source(self.tree, self.helper_path)
        names = (node.name for node in source.tree.body if isinstance(node, ast.FunctionDef))
        return frozenset(names)

    @staticmethod
    def _all_names(module: HostModule) -> Iterator[str]:
        yield from module.definitions
        yield from module.imported
        yield from (node.id for node in ast.walk(module.source.tree) if isinstance(node, ast.Name))

    def write(self) -> Wrapper:
        """Follow what the registered functions need, then put it together."""
        for statement in self._roots():
            self._keep(self.main, statement)
        used = {
            self.naming.launchers[key]: items
            for key, items in self.by_kernel.items()
            if self.naming.launchers[key] in self.launched
        }
        for name in HELPERS if used else ():
            self._import(name, Imported(module=self.package.module_path(self.helper_path), name=name, alias=None))
        if used:
            self._import("torch", Imported(module="torch", name=None, alias=None))
        return Wrapper(text=self._text(used), findings=tuple(dict.fromkeys(self.findings)))

    def _roots(self) -> Iterator[ast.stmt]:
        for statement in self.main.source.tree.body:
            heads = [*getattr(statement, "decorator_list", ())]
            if isinstance(statement, ast.Expr):
                heads.append(statement.value)
            calls = (node for head in heads for node in ast.walk(head) if isinstance(node, ast.Call))
            if any(self._registers(call) for call in calls):
                yield statement

    def _registers(self, call: ast.Call) -> bool:
        is_call = ast.unparse(call.func).rsplit(".", 1)[-1] == "register_impl"
        return is_call and string(argument(call, 1, "backend")) == self.package.layout.source

    def _keep(self, module: HostModule, statement: ast.stmt) -> None:
        """Rewrite a statement into a chunk, and then what it needs."""
        key = (module.source.path, module.source.start(statement))
        if key in self.chunks:
            return
        if module not in self.files:
            self.files.append(module)
        rewritten = rewrite(statement, module, self.modules, self.naming)
        self.findings += rewritten.findings
        self.launched |= rewritten.launches
        self.uses_ceil_div |= rewritten.uses_ceil_div
        self.chunks[key] = self._chunk(module, statement, rewritten)
        for name in _loaded(rewritten.text):
            self._need(module, name, statement)

    def _chunk(self, module: HostModule, statement: ast.stmt, rewritten: Rewritten) -> _Chunk:
        source = module.source
        start = source.line_start(source.start(statement))
        body = source.tree.body
        index = body.index(statement)
        previous = source.lines(body[index - 1]).end if index else start
        lead = source.data[previous:start].decode("utf-8", "surrogateescape").replace("\r\n", "\n").strip("\n")
        return _Chunk(
            order=(self.files.index(module), start),
            text=f"{lead}\n{rewritten.text}" if lead else rewritten.text,
            is_definition=isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)),
            near=previous == start,
        )

    def _need(self, module: HostModule, name: str, where: ast.stmt) -> None:
        if name in module.definitions and name not in module.kernels:
            self._own(name, module, where)
            for statement in module.definitions[name]:
                self._keep(module, statement)
        elif name in module.imported:
            self._need_import(module, name, module.imported[name], where)

    def _own(self, name: str, module: HostModule, where: ast.stmt) -> None:
        if self.owners.setdefault(name, module) is not module:
            message = f"`{name}` means different things in {self.owners[name].source.path} and here"
            self.findings.append(module.finding(where, message, "give one of them another name"))

    def _need_import(self, module: HostModule, name: str, imported: Imported, where: ast.stmt) -> None:
        home = self.modules.home(imported)
        if imported.dotted == LANGUAGE or imported.dotted.startswith(f"{LANGUAGE}."):
            return  # refused where it is used
        if home is None:
            if self._loads_language(imported):
                message = f"`{name}` comes from {imported.module}, which imports {LANGUAGE}"
                self.findings.append(
                    module.finding(where, message, "host code must run without the source language")
                )
            self._import(name, imported)
        elif self.modules.names_module(imported):
            message = f"the source module `{name}` is used as a whole"
            self.findings.append(module.finding(where, message, "import the functions that are needed by name"))
        elif imported.name in self.helpers and imported.name is not None:
            target = self.package.module_path(self.helper_path)
            self._import(name, Imported(module=target, name=imported.name, alias=imported.alias))
        elif imported.alias and imported.alias != imported.name:
            message = f"`{imported.name}` is imported under another name"
            self.findings.append(module.finding(where, message, "import it under its own name"))
        elif imported.name is not None:
            self._need(home, imported.name, where)

    def _loads_language(self, imported: Imported) -> bool:
        """Whether an imported module of the package loads the source language."""
        parts = imported.module.split(".")
        stem = "/".join((self.package.root, *parts[1:]))
        paths = [path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in self.tree]
        if parts[0] != self.package.name or not paths:
            return False
        names = file_imports(read_source(self.tree, paths[0]), self.package).names.values()
        return any(dotted == LANGUAGE or dotted.startswith(f"{LANGUAGE}.") for dotted in names)

    def _import(self, name: str, imported: Imported) -> None:
        self.imported[name] = imported

    def _text(self, used: Mapping[str, Sequence[Export]]) -> str:
        one_per_line = single_line(self.tree, self.package.root)
        block = import_block(self.imported.values(), self.package.name, one_per_line=one_per_line)
        parts = [self._opening(), block]
        if used:
            parts.append(constants(self.op.name, [e for items in used.values() for e in items], self.names))
        text = "\n\n".join(part for part in parts if part)
        definitions = [self._ceil_div()] if self.uses_ceil_div else []
        words = Words(names=self.names, op=self.op.name, target=self.package.layout.target)
        definitions += [launcher(name, items, words) for name, items in used.items()]
        for definition in definitions:
            text += f"\n\n\n{definition}"
        previous_is_definition = bool(definitions)
        last_file = -1
        for chunk in sorted(self.chunks.values(), key=lambda c: (-c.order[0], c.order[1])):
            near = chunk.near and chunk.order[0] == last_file
            wide = previous_is_definition or chunk.is_definition
            text += ("\n\n\n" if wide else "\n" if near else "\n\n") + chunk.text
            previous_is_definition, last_file = chunk.is_definition, chunk.order[0]
        return text + "\n"

    def _opening(self) -> str:
        """License lines and docstring; the reference's own where it has them."""
        source = self.main.source
        if ast.get_docstring(source.tree) is not None:
            text = source.data[: source.end(source.tree.body[0])].decode("utf-8", "surrogateescape")
            return text.replace("\r\n", "\n")
        lines = source.data.decode("utf-8", "surrogateescape").splitlines()
        count = next((i for i, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
        header = "\n".join(lines[:count]).strip("\n")
        layout = self.package.layout
        title = f'"""{layout.target} {self.op.name}: the {layout.source} host code over the C library."""'
        return f"{header}\n\n{title}" if header else title

    def _ceil_div(self) -> str:
        return f"def {self.naming.ceil_div}(a, b):\n    return -(-a // b)"


def _launcher(export: Export, taken: set[str]) -> str:
    return fresh(f"_launch_{export.kernel.function.strip('_')}", taken)


def _loaded(text: str) -> tuple[str, ...]:
    """The global names that a piece of code reads, sorted."""
    try:
        top = symtable.symtable(text, "chunk", "exec")
    except SyntaxError:
        return ()
    names = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    waiting = top.get_children()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return tuple(sorted(names))

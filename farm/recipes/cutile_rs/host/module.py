"""A file of the reference as host code sees it: definitions, imported names, kernels."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from farm.layout import Package
from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.inventory import file_imports, kernels, module_file
from farm.recipes.cutile_rs.syntax import Source, read_source
from farm.tree import Tree

#: Everything below this name belongs to the source language.
LANGUAGE = "cuda.tile"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A name that an import statement binds."""

    module: str  #: module that is imported, or imported from
    name: str | None  #: name taken from it, None for `import module`
    alias: str | None  #: the `as` name

    @property
    def dotted(self) -> str:
        """Full name of what is bound."""
        return self.module if self.name is None else f"{self.module}.{self.name}"


class HostModule:
    """A parsed file with its top-level definitions, imports and kernels."""

    def __init__(self, source: Source, package: Package) -> None:
        self.source = source
        self.imports = file_imports(source, package)
        self.kernels = {site.function: site for site in kernels(source, package)}
        self.imported = dict(self._imported())
        self.definitions: dict[str, list[ast.stmt]] = {}
        for statement in source.tree.body:
            for name in bound_names(statement):
                self.definitions.setdefault(name, []).append(statement)

    def _imported(self) -> Iterator[tuple[str, Imported]]:
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.split(".")[0]
                    yield bound, Imported(module=alias.name, name=None, alias=alias.asname)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    bound = alias.asname or alias.name
                    module = self.imports.names[bound].rsplit(".", 1)[0]
                    yield bound, Imported(module=module, name=alias.name, alias=alias.asname)

    def in_language(self, node: ast.AST) -> str | None:
        """The dotted name of an expression that belongs to the source language, else None."""
        dotted = self.imports.dotted(node)
        is_language = dotted is not None and (dotted == LANGUAGE or dotted.startswith(f"{LANGUAGE}."))
        return dotted if is_language else None

    def finding(self, node: ast.AST, message: str, advice: str) -> Finding:
        """A finding at a node of this file."""
        return Finding(
            file=self.source.path,
            line=getattr(node, "lineno", 1),
            column=getattr(node, "col_offset", 0) + 1,
            construct=self.source.text(node).split("\n")[0],
            message=message,
            advice=advice,
        )


class HostModules:
    """The files of the source folder, read when they are first needed."""

    def __init__(self, tree: Tree, package: Package) -> None:
        self.tree = tree
        self.package = package
        self._read: dict[str, HostModule] = {}

    def get(self, path: str) -> HostModule:
        """The file at a path. Raises RepositoryError when it is missing or not Python."""
        if path not in self._read:
            self._read[path] = HostModule(read_source(self.tree, path), self.package)
        return self._read[path]

    def home(self, imported: Imported) -> HostModule | None:
        """The file of the source folder that an imported name comes from, or None."""
        path = module_file(self.tree, self.package, imported.dotted)
        return None if path is None else self.get(path)

    def names_module(self, imported: Imported) -> bool:
        """Whether an imported name is a file of the source folder, not a name in it."""
        path = module_file(self.tree, self.package, imported.dotted)
        return path is not None and self.package.module_path(path) == imported.dotted

    def kernel(self, module: HostModule, node: ast.expr) -> tuple[str, str] | None:
        """File and function of the kernel that an expression names, or None."""
        if not isinstance(node, ast.Name):
            return None
        if node.id in module.kernels:
            return module.source.path, node.id
        imported = module.imported.get(node.id)
        home = self.home(imported) if imported else None
        if imported and home and imported.name in home.kernels:
            return home.source.path, imported.name or ""
        return None


def bound_names(statement: ast.stmt) -> tuple[str, ...]:
    """The names that a top-level statement binds, imports aside."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (statement.name,)
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return ()
    nodes = (node for node in ast.walk(statement))
    stores = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return tuple(sorted(stores))

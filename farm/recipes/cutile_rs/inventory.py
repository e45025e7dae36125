"""`farm ops`: operators, kernels, test rows and landed implementations, read from syntax alone."""

import ast
import fnmatch
from collections.abc import Iterator
from dataclasses import replace

from farm.errors import UnreadableFile
from farm.layout import Layout, Package, find_package
from farm.op import KernelSite, Op, Problem, TestSite
from farm.recipes.cutile_rs.rows import count_rows, parametrizations, scope_of
from farm.recipes.cutile_rs.syntax import Imports, Source, argument, read_source, string
from farm.tree import Mode, Tree, tree_digest

#: What the source language's kernel decorator is called in full.
KERNEL = "cuda.tile.kernel"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def inventory(tree: Tree, layout: Layout) -> tuple[Op, ...]:
    """The ops of a tree, sorted by name.

    A file that cannot be read is a problem of the ops that need it, and no other op's. One that no op imports is
    taken for an op of its own, since nobody can say that it registers none. Raises RepositoryError when the
    layout is missing.
    """
    package = find_package(tree, layout)
    folder = f"{package.source_folder}/"
    ops: dict[str, Op] = {}
    unread: dict[str, Problem] = {}
    for path in sorted(tree):
        if not (path.startswith(folder) and path.endswith(".py")) or tree[path].mode is Mode.LINK:
            continue
        try:
            source = read_source(tree, path)
        except UnreadableFile as error:
            unread[path] = _problem(error)
            continue
        registered = registrations(source, layout.source)
        if registered:
            _add(ops, _op(tree, package, source, _op_name(path), registered))
    blamed = {problem.file for op in ops.values() for problem in op.problems}
    for path, problem in unread.items():
        if path not in blamed and not path.endswith("/__init__.py"):
            _add(ops, _unread_op(tree, package, path, problem))
    return tuple(ops[name] for name in sorted(ops))


def _op_name(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".py")


def _add(ops: dict[str, Op], op: Op) -> None:
    """Add an op; a second one of its name makes the first a problem."""
    first = ops.setdefault(op.name, op)
    if first is not op:
        file = op.source_files[0]
        message = f"two files define an op `{op.name}`: {first.source_files[0]} and {file}"
        clash = Problem(file=file, line=1, column=1, message=message, advice="rename one of the files")
        ops[op.name] = replace(first, problems=(*first.problems, clash))


def _op(tree: Tree, package: Package, source: Source, name: str, registered: tuple[str, ...]) -> Op:
    sources, unread = source_closure(tree, package, source)
    tests, untested = _test_sites(tree, package, name)
    return Op(
        name=name,
        registered=registered,
        source_files=(*(item.path for item in sources), *(problem.file for problem in unread)),
        kernels=tuple(site for item in sources for site in kernels(item, package)),
        tests=tests,
        target_files=package.matches(tree, package.layout.implementation, name),
        problems=(*_unread_packages(tree, package, source.path), *unread, *untested),
    )


def _unread_op(tree: Tree, package: Package, path: str, problem: Problem) -> Op:
    """What can be said of an op whose own file cannot be read."""
    name = _op_name(path)
    tests, untested = _test_sites(tree, package, name)
    return Op(
        name=name,
        registered=(),
        source_files=(path,),
        kernels=(),
        tests=tests,
        target_files=package.matches(tree, package.layout.implementation, name),
        problems=(problem, *untested),
    )


def _problem(error: UnreadableFile) -> Problem:
    return Problem(
        file=error.file,
        line=error.line,
        column=error.column,
        message=error.message,
        advice=error.next_step or "correct the file",
    )


def _unread_packages(tree: Tree, package: Package, path: str) -> Iterator[Problem]:
    """What cannot be read of the `__init__.py` above a file: importing the file runs them."""
    parts = path.split("/")
    for end in range(package.source_folder.count("/") + 1, len(parts)):
        above = "/".join((*parts[:end], "__init__.py"))
        if above in tree:
            try:
                read_source(tree, above)
            except UnreadableFile as error:
                yield _problem(error)


def test_files(tree: Tree, package: Package, op: str) -> tuple[str, ...]:
    """The op's test files, by name."""
    return package.matches(tree, package.layout.tests, op)


def own_digest(tree: Tree, layout: Layout, op: Op) -> str:
    """Digest of what a patch for the op may hold and of its implementation's folder: names a candidate's state."""
    package = find_package(tree, layout)
    globs = (*layout.change_set, *layout.implementation)
    own = {*package.matches(tree, globs, op.name), *test_files(tree, package, op.name)}
    return tree_digest({path: tree[path] for path in own})


def registrations(source: Source, backend: str) -> tuple[str, ...]:
    """The names that a file registers for a backend, in order of appearance."""
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    found = []
    for call in sorted(calls, key=lambda c: (c.lineno, c.col_offset)):
        if ast.unparse(call.func).rsplit(".", 1)[-1] != "register_impl":
            continue
        name = string(argument(call, 0, "name"))
        if name is not None and string(argument(call, 1, "backend")) == backend:
            found.append(name)
    return tuple(dict.fromkeys(found))


def file_imports(source: Source, package: Package) -> Imports:
    """The imports of a file of the package."""
    module = package.module_path(source.path)
    return Imports(source, module, is_package=source.path.endswith("/__init__.py"))


def source_closure(tree: Tree, package: Package, source: Source) -> tuple[tuple[Source, ...], tuple[Problem, ...]]:
    """A source file and the files of the source folder that it imports, directly or not, itself first.

    Behind them what cannot be read of these files.
    """
    found, waiting = {source.path: source}, [source]
    unread: dict[str, Problem] = {}
    while waiting:
        item = waiting.pop(0)
        for dotted in sorted(set(file_imports(item, package).names.values())):
            path = module_file(tree, package, dotted)
            if path is None or path in found or path in unread:
                continue
            try:
                found[path] = read_source(tree, path)
                waiting.append(found[path])
            except UnreadableFile as error:
                unread[path] = _problem(error)
    return tuple(found.values()), tuple(unread.values())


def module_file(tree: Tree, package: Package, dotted: str) -> str | None:
    """The file of the source folder that defines `dotted` (a module, or a name of one), or None."""
    if not dotted.startswith(f"{package.name}."):
        return None
    parts = dotted.split(".")[1:]
    for end in (len(parts), len(parts) - 1):
        path = f"{package.root}/{'/'.join(parts[:end])}.py"
        if path in tree and path.startswith(f"{package.source_folder}/"):
            return path
    return None


def kernels(source: Source, package: Package) -> Iterator[KernelSite]:
    """The kernel functions of a file: decorated ones, and ones that are passed to the decorator."""
    imports = file_imports(source, package)
    functions = {node.name: node for node in ast.walk(source.tree) if isinstance(node, Function)}
    passed = {
        argument_.id
        for call in ast.walk(source.tree)
        if isinstance(call, ast.Call) and is_kernel_decorator(call.func, imports)
        for argument_ in call.args
        if isinstance(argument_, ast.Name)
    }
    for name, node in functions.items():
        if name in passed or any(is_kernel_decorator(item, imports) for item in node.decorator_list):
            yield KernelSite(function=name, file=source.path, line=node.lineno)


def is_kernel_decorator(node: ast.expr, imports: Imports) -> bool:
    """Whether an expression is the kernel decorator, plain or with arguments."""
    return imports.dotted(node.func if isinstance(node, ast.Call) else node) == KERNEL


def _test_sites(tree: Tree, package: Package, op: str) -> tuple[tuple[TestSite, ...], tuple[Problem, ...]]:
    """The op's test functions, and what cannot be read of its test files."""
    sites: list[TestSite] = []
    unread: list[Problem] = []
    for path in test_files(tree, package, op):
        try:
            sites += _tests(tree, package, path)
        except UnreadableFile as error:
            unread.append(_problem(error))
    return tuple(sites), tuple(unread)


def _tests(tree: Tree, package: Package, path: str) -> Iterator[TestSite]:
    source = read_source(tree, path)
    backend = package.layout.source
    scope = scope_of(source.tree.body, {}, backend)
    for node in source.tree.body:
        if isinstance(node, Function):
            yield from _test(package, path, "", node, (), scope)
        elif isinstance(node, ast.ClassDef):
            inner = scope_of(node.body, scope, backend)
            outer = tuple(node.decorator_list)
            for item in node.body:
                if isinstance(item, Function):
                    yield from _test(package, path, f"{node.name}.", item, outer, inner)


def _test(
    package: Package,
    path: str,
    prefix: str,
    node: Function,
    outer: tuple[ast.expr, ...],
    scope: dict[str, object],
) -> Iterator[TestSite]:
    marks = parametrizations([*node.decorator_list, *outer])
    if not node.name.startswith("test") or not any("backend" in mark.names for mark in marks):
        return
    if any(fnmatch.fnmatchcase(node.name, pattern) for pattern in package.layout.perf):
        return
    rows = count_rows(marks, scope, package.layout.source)
    yield TestSite(file=path, function=f"{prefix}{node.name}", rows=rows)

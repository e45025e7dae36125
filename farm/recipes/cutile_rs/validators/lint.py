"""The op's own files: laid out as rustfmt does, where the toolchain has it, and free of what no file may hold."""

import ast
from collections.abc import Iterator

from farm.fault import Owner
from farm.layout import find_package
from farm.pipeline.stage import Finding
from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.rustfmt import available, unlike
from farm.recipes.cutile_rs.stages.tools import finding, workspace_tree
from farm.recipes.cutile_rs.validators.case import Case, bad, good
from farm.tree import Tree


def lint(case: Case) -> Validated:
    """Nothing to complain about in kernel.rs, ffi.rs and the wrapper, as far as they are there."""
    tree = workspace_tree(case.io)
    package = find_package(tree, case.layout)
    own = package.matches(tree, case.layout.implementation, case.op.name)
    rust_files = tuple(path for path in own if path.endswith(".rs"))
    found = [*unlike(case.io, rust_files), *_wrapper(case, tree, own)]
    if not found:
        with_it = "laid out as rustfmt does" if available(case.io) else "the toolchain has no rustfmt"
        return good(f"{len(own)} files; {with_it}")
    owner = Owner.KERNEL if str(found[0].file).endswith("/kernel.rs") else Owner.HOST
    return bad(owner, f"{found[0].file}:{found[0].line or 1}: {found[0].message}", *found)


def _wrapper(case: Case, tree: Tree, own: tuple[str, ...]) -> Iterator[Finding]:
    """What a wrapper may not do whatever its rows say: call the source language, build, or read a clock."""
    source = case.layout.source_dsl or ""
    banned = tuple(name for name in (source, "subprocess", "ctypes", "time") if name)
    for path in own:
        if not path.endswith(".py"):
            continue
        try:
            parsed = ast.parse(tree[path].data)
        except (SyntaxError, ValueError) as error:
            yield finding(f"not Python: {error}", "correct the syntax", path)
            continue
        for node in ast.walk(parsed):
            names = _imported(node)
            for name in names:
                if any(name == word or name.startswith(f"{word}.") for word in banned):
                    yield Finding(
                        file=path, line=getattr(node, "lineno", None), column=None, construct=f"import {name}",
                        message=f"a wrapper may not import {name}",
                        advice="call the op's C function and torch; nothing else is needed",
                    )  # fmt: skip


def _imported(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Import):
        return tuple(alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
        return tuple(f"{node.module}.{alias.name}" for alias in node.names)
    return ()

"""The op's own files: laid out as rustfmt does, where the toolchain has it, and free of what no file may hold."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from farm.fault import Owner
from farm.layout import find_package
from farm.pipeline.stage import Finding
from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.kc import TOOL_LIMIT_S
from farm.recipes.cutile_rs.stages.tools import environment, finding, workspace_tree
from farm.recipes.cutile_rs.validators.case import Case, bad, good
from farm.tree import Tree

_SPAN = re.compile(r"^Diff in (?P<file>.+?):(?P<line>\d+):?$", re.MULTILINE)


def lint(case: Case) -> Validated:
    """Nothing to complain about in kernel.rs, ffi.rs and the wrapper, as far as they are there."""
    tree = workspace_tree(case.io)
    package = find_package(tree, case.layout)
    own = package.matches(tree, case.layout.implementation, case.op.name)
    rust_files = tuple(path for path in own if path.endswith(".rs"))
    found = [*_formatted(case, rust_files), *_wrapper(case, tree, own)]
    if not found:
        return good(f"{len(own)} files; {_tool(case)}")
    owner = Owner.KERNEL if str(found[0].file).endswith("/kernel.rs") else Owner.HOST
    return bad(owner, f"{found[0].file}:{found[0].line or 1}: {found[0].message}", *found)


def _tool(case: Case) -> str:
    return "rustfmt ran" if _rustfmt(case).exists() else "the toolchain has no rustfmt"


def _rustfmt(case: Case) -> Path:
    return case.io.toolchain / "rust/bin/rustfmt"


def _formatted(case: Case, files: tuple[str, ...]) -> Iterator[Finding]:
    if not files or not _rustfmt(case).exists():
        return
    argv = (str(_rustfmt(case)), "--check", "--edition", "2024", "--config", "max_width=100", *files)
    ended = case.io.run(argv, cwd=case.io.workspace, env=environment(case.io), timeout_s=TOOL_LIMIT_S)
    if ended.exit_code == 0:
        return
    places = [(match["file"], int(match["line"])) for match in _SPAN.finditer(ended.output)]
    for file, line in places[:20]:
        inside = Path(file)
        name = str(inside.relative_to(case.io.workspace)) if inside.is_relative_to(case.io.workspace) else file
        yield Finding(
            file=name, line=line, column=None, construct=None, message="not as rustfmt writes it",
            advice="run rustfmt --edition 2024 on the file",
        )  # fmt: skip
    if not places:
        yield finding(f"rustfmt: {ended.output.strip()[-300:]}", "correct the syntax", files[0])


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

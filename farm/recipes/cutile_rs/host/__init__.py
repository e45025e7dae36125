"""Stage D's writer: the six files of an op from its own host code, its analysis and its kernel plan."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from farm.analysis import Analysis
from farm.errors import RepositoryError
from farm.layout import Layout, Package, find_package
from farm.op import Op
from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.host.exports import make_exports
from farm.recipes.cutile_rs.host.ffi import write_ffi
from farm.recipes.cutile_rs.host.wrapper import write_wrapper
from farm.recipes.cutile_rs.inventory import test_files
from farm.recipes.cutile_rs.license import rust_header
from farm.recipes.cutile_rs.plan import KernelPlan
from farm.recipes.cutile_rs.registration import add_import, add_module
from farm.recipes.cutile_rs.syntax import read_source
from farm.recipes.cutile_rs.testfile import add_backend
from farm.tree import Tree


@dataclass(frozen=True, kw_only=True)
class HostCode:
    """The files of an op's target implementation, or what stands in their way."""

    files: Mapping[str, bytes]  #: path in the target repo to contents; empty when there are findings
    findings: tuple[Finding, ...]


def write_host(op: Op, tree: Tree, layout: Layout, analysis: Analysis, plan: KernelPlan) -> HostCode:
    """All files of the op: kernel.rs as planned, ffi.rs, wrapper, both registrations, test parameter.

    What the tree lacks or holds in a form that cannot be read is a finding too, never an exception.
    """
    try:
        package = find_package(tree, layout)
        return _write(op, tree, package, analysis, plan)
    except RepositoryError as error:
        finding = Finding(
            file=None, line=None, column=None, construct=None, message=str(error), advice="repair the file"
        )
        return HostCode(files={}, findings=(finding,))


def _write(op: Op, tree: Tree, package: Package, analysis: Analysis, plan: KernelPlan) -> HostCode:
    layout = package.layout
    exports, findings = make_exports(plan, analysis)
    wrapper = write_wrapper(op, tree, package, exports)
    folder = f"{package.target_folder}/{op.name}_kernel"
    registration, modules = package.path(layout.registration), package.path(layout.modules)
    files = {
        f"{folder}/kernel.rs": plan.source.encode(),
        f"{folder}/ffi.rs": write_ffi(plan, exports, rust_header(tree, op)).encode(),
        f"{package.target_folder}/{op.name}.py": wrapper.text.encode("utf-8", "surrogateescape"),
        registration: add_import(read_source(tree, registration), op.name, layout.target),
        modules: add_module(read_bytes(tree, modules), op.name, package),
    }
    found = [*findings, *wrapper.findings]
    for path in test_files(tree, package, op.name):
        edit = add_backend(read_source(tree, path), package)
        files[path] = edit.data
        found += edit.findings
    found += _not_python(files)
    return HostCode(files={} if found else files, findings=tuple(found))


def read_bytes(tree: Tree, path: str) -> bytes:
    """A file of a tree. Raises RepositoryError when it is missing."""
    if path not in tree:
        raise RepositoryError(f"the repository has no {path}")
    return tree[path].data


def _not_python(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """A finding for each generated Python file that does not parse: an error of this writer."""
    for path, data in files.items():
        if not path.endswith(".py"):
            continue
        try:
            ast.parse(data)
        except SyntaxError as error:
            yield Finding(
                file=path,
                line=error.lineno,
                column=error.offset,
                construct=(error.text or "").rstrip() or None,
                message=f"the generated code is not Python: {error.msg}",
                advice="the host-code writer has an error; report it with the reference's file",
            )

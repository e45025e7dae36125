"""The op's own files: laid out as rustfmt does, where the toolchain has it, and free of what no file may hold."""

from collections.abc import Iterator

from farm.fault import Owner
from farm.layout import Package, find_package
from farm.pipeline.stage import Finding
from farm.recipes import Validated
from farm.recipes.cutile_rs import harmless
from farm.recipes.cutile_rs.stages.rustfmt import available, unlike
from farm.recipes.cutile_rs.stages.tools import workspace_tree
from farm.recipes.cutile_rs.validators.case import Case, bad, good
from farm.tree import Tree


def lint(case: Case) -> Validated:
    """Nothing to complain about in kernel.rs, ffi.rs and the wrapper, as far as they are there."""
    tree = workspace_tree(case.io)
    package = find_package(tree, case.layout)
    own = package.matches(tree, case.layout.implementation, case.op.name)
    rust_files = tuple(path for path in own if path.endswith(".rs"))
    found = [*unlike(case.io, rust_files), *_harm(case, tree, package, own)]
    if not found:
        with_it = "laid out as rustfmt does" if available(case.io) else "the toolchain has no rustfmt"
        return good(f"{len(own)} files; {with_it}")
    owner = Owner.KERNEL if str(found[0].file).endswith("/kernel.rs") else Owner.HOST
    return bad(owner, f"{found[0].file}:{found[0].line or 1}: {found[0].message}", *found)


def _harm(case: Case, tree: Tree, package: Package, own: tuple[str, ...]) -> Iterator[Finding]:
    """What the farm's review of the patch would refuse as well."""
    for path in own:
        text = tree[path].data.decode("utf-8", "replace")
        if path.endswith(".py"):
            found = harmless.python(text, path, package)
        elif path.endswith(".rs"):
            found = harmless.rust_file(text, path)
        else:
            continue
        for line, what in found:
            yield Finding(
                file=path, line=line, column=None, construct=None,
                message=f"an op's file may not do this: it {what}",
                advice="kernels, their C functions and calls of torch are all it needs",
            )  # fmt: skip

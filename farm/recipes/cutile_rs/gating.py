"""What the gates on a GPU must know of an op, and the tree that they judge."""

from farm.bundle import OpNames
from farm.errors import ConfigurationError
from farm.hiding import Bare
from farm.layout import Layout, Package, find_package
from farm.op import Op
from farm.patch import Patch, apply_patch, make_patch
from farm.recipes.cutile_rs import rust
from farm.recipes.cutile_rs.inventory import test_files
from farm.recipes.cutile_rs.syntax import read_source
from farm.recipes.cutile_rs.testfile import add_backend
from farm.tree import Entry, Tree

#: What cutile's compiler appends to the name of an entry's function.
ENTRY_SUFFIX = "_entry"


def judged(bare: Bare, layout: Layout, op: Op, patch: Patch) -> Patch:
    """The patch as it is judged: what leaves the change set is as it was, and tests differ by the backend alone.

    Raises PatchConflict, PatchRefused when the patch does not fit.
    """
    package = find_package(bare.tree, layout)
    tests = test_files(bare.tree, package, op.name)
    tree = apply_patch(bare.tree, patch)
    for path in {change.path for change in patch.changes} - set(bare.change_set):
        if path in bare.tree:
            tree[path] = bare.tree[path]
        elif not _own(path, package, op):
            del tree[path]
    for path in tests:
        data = add_backend(read_source(bare.tree, path), package).data
        tree[path] = Entry(mode=bare.tree[path].mode, data=data)
    return make_patch(bare.tree, tree)


def names(tree: Tree, layout: Layout, op: Op) -> OpNames:
    """The names of an op in the judged tree. Raises ConfigurationError when the recipe lacks one of them."""
    for field in ("registry", "source_dsl", "library"):
        if not getattr(layout, field):
            raise ConfigurationError(f"[layout] of the recipe lacks {field!r}, which gates on a GPU need")
    package = find_package(tree, layout)
    return OpNames(
        source=layout.source,
        target=layout.target,
        package=package.name,
        package_path=package.root.rpartition("/")[0] or ".",
        tests=test_files(tree, package, op.name),
        registry=package.module(layout.registry),
        source_module=package.module_path(op.source_files[0]),
        target_module=package.module_path(f"{package.target_folder}/{op.name}.py"),
        source_dsl=layout.source_dsl,
        library_place=package.path(layout.library),
        entries=_entries(tree, package, op),
        source_kernels=tuple(site.function for site in op.kernels),
        perf=layout.perf,
        benchmark=None if layout.benchmark is None else package.module(layout.benchmark),
        comparison=None if layout.comparison is None else package.module(layout.comparison),
        environment=dict(layout.environment),
        target_environment=dict(layout.target_environment),
    )


def _own(path: str, package: Package, op: Op) -> bool:
    """Whether a path is one of the op's implementation, such as a second Rust file of its folder."""
    return path in package.matches((path,), package.layout.implementation, op.name)


def _entries(tree: Tree, package: Package, op: Op) -> tuple[str, ...]:
    own = package.matches(tree, package.layout.implementation, op.name)
    texts = (tree[path].data.decode("utf-8", "replace") for path in own if path.endswith(".rs"))
    return tuple(sorted({name + ENTRY_SUFFIX for text in texts for name in rust.entries(text)}))

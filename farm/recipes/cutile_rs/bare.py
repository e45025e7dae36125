"""The bare base of an op: the tree without its target implementation and all that speaks of it."""

from collections.abc import Iterator

from farm.hiding import Bare
from farm.layout import Layout, Package, find_package
from farm.op import Op
from farm.recipes.cutile_rs import rust
from farm.recipes.cutile_rs.inventory import test_files
from farm.recipes.cutile_rs.registration import remove_import, remove_module
from farm.recipes.cutile_rs.syntax import read_source
from farm.recipes.cutile_rs.targetless import without_target
from farm.tree import Entry, Tree


def bare(tree: Tree, layout: Layout, op: Op) -> Bare:
    """The tree as it was before the op landed, and what was taken out of it.

    For an op that has not landed the tree is the base itself. Raises RepositoryError when the layout is
    missing or a file that has to be edited is not Python.
    """
    package = find_package(tree, layout)
    removed = {path: tree[path] for path in op.target_files if path in tree}
    edited = dict(_edited(tree, package, op.name)) if removed else {}
    kept = {path: edited.get(path, entry) for path, entry in tree.items() if path not in removed}
    return Bare(
        tree=kept,
        withheld=package.matches(kept, layout.withhold),
        hidden={**removed, **{path: tree[path] for path in edited}},
        symbols=_symbols(removed),
        siblings=_siblings(kept, package, op.name),
        change_set=change_set(tree, layout, op),
        crate=_crate(kept, package),
    )


def _crate(tree: Tree, package: Package) -> dict[str, bytes]:
    """The cargo crate of the target implementations: the folder above the `src` of the file with the modules."""
    folder = package.path(package.layout.modules).rsplit("/src/", 1)[0] + "/"
    return {path.removeprefix(folder): entry.data for path, entry in tree.items() if path.startswith(folder)}


def _edited(tree: Tree, package: Package, op: str) -> Iterator[tuple[str, Entry]]:
    """The files that change, in their bare form."""
    layout = package.layout
    registration, modules = package.path(layout.registration), package.path(layout.modules)
    new: dict[str, bytes] = {}
    if registration in tree:
        new[registration] = remove_import(read_source(tree, registration), op)
    if modules in tree:
        new[modules] = remove_module(tree[modules].data, op)
    for path in test_files(tree, package, op):
        new[path] = without_target(read_source(tree, path), layout.target)
    for path, data in new.items():
        if data != tree[path].data:
            yield path, Entry(mode=tree[path].mode, data=data)


def _symbols(removed: Tree) -> tuple[str, ...]:
    texts = (entry.data.decode("utf-8", "replace") for path, entry in removed.items() if path.endswith(".rs"))
    return tuple(sorted({symbol for text in texts for symbol in rust.symbols(text)}))


def _siblings(tree: Tree, package: Package, op: str) -> tuple[str, ...]:
    names = package.layout.siblings.get(op, ())
    paths = {path for name in names for path in package.matches(tree, package.layout.implementation, name)}
    return tuple(sorted(paths))


def change_set(tree: Tree, layout: Layout, op: Op) -> tuple[str, ...]:
    """The paths that a patch for the op may touch: the recipe's, and the op's test files."""
    package = find_package(tree, layout)
    paths = [package.path(template, op.name) for template in layout.change_set]
    return (*paths, *test_files(tree, package, op.name))

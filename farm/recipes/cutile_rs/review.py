"""What a patch may do to the files that others share: exactly the op's registration and test parameter."""

import ast
from collections.abc import Iterator

from farm.changeset import Violation, check
from farm.hiding import Bare
from farm.layout import Layout, find_package
from farm.op import Op
from farm.patch import Patch
from farm.recipes.cutile_rs import harmless, rust
from farm.recipes.cutile_rs.inventory import test_files
from farm.recipes.cutile_rs.registration import add_import, add_module
from farm.recipes.cutile_rs.syntax import read_source
from farm.recipes.cutile_rs.testfile import add_backend
from farm.tree import Mode, Tree


def review(bare: Bare, layout: Layout, op: Op, patch: Patch) -> tuple[Violation, ...]:
    """Everything a patch does beyond what it may."""
    return (
        *check(patch, bare.change_set),
        *_shared(bare.tree, layout, op, patch),
        *_harm(bare.tree, layout, op, patch),
    )


def _harm(tree: Tree, layout: Layout, op: Op, patch: Patch) -> Iterator[Violation]:
    """What the op's own files do that they need not."""
    if not layout.wrapper_imports:
        return
    package = find_package(tree, layout)
    for path in package.matches([change.path for change in patch.changes], layout.implementation, op.name):
        after = next(change.after for change in patch.changes if change.path == path)
        if after is None or after.mode is Mode.LINK:
            continue
        text = after.data.decode("utf-8", "replace")
        found = (
            harmless.python(text, path, package)
            if path.endswith(".py")
            else harmless.rust_file(text, path)
            if path.endswith(".rs")
            else ()
        )
        for line, what in found:
            yield Violation(path=path, reason=f"line {line}: it {what}")


def _shared(tree: Tree, layout: Layout, op: Op, patch: Patch) -> Iterator[Violation]:
    package = find_package(tree, layout)
    registration, modules = package.path(layout.registration), package.path(layout.modules)
    expected: dict[str, bytes] = {}
    if registration in tree:
        expected[registration] = add_import(read_source(tree, registration), op.name, layout.target)
    if modules in tree:
        expected[modules] = add_module(tree[modules].data, op.name, package)
    for path in test_files(tree, package, op.name):
        expected[path] = add_backend(read_source(tree, path), package).data
    for change in patch.changes:
        if change.path not in expected:
            continue
        if change.after is None:
            yield Violation(path=change.path, reason="it may not be deleted: other ops need it")
        elif not means_the_same(change.path, change.after.data, expected[change.path]):
            yield Violation(
                path=change.path, reason=f"it holds more than {_what(change.path, modules, registration)}"
            )


def _what(path: str, modules: str, registration: str) -> str:
    if path == modules:
        return "one more `mod` for the op"
    return "one more import for the op" if path == registration else "the target backend as one more parameter"


def means_the_same(path: str, found: bytes, expected: bytes) -> bool:
    """Whether two files mean the same: equal syntax trees, in Rust equal tokens with modules in any order."""
    if path.endswith(".py"):
        try:
            return ast.dump(ast.parse(found)) == ast.dump(ast.parse(expected))
        except (SyntaxError, ValueError):
            return False
    texts = (data.decode("utf-8", "replace") for data in (found, expected))
    first, second = (_rust_parts(text) for text in texts)
    return first == second


def _rust_parts(text: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Tokens outside of the inline modules, and those of each module, sorted."""
    spans = [span for _, span in rust.modules(text)]
    inside = sorted(rust.code_tokens(text[span.start : span.end]) for span in spans)
    for span in reversed(spans):
        text = text[: span.start] + text[span.end :]
    return rust.code_tokens(text), inside

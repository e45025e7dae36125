"""The op's lines in files that other ops share: exactly those, read from syntax trees."""

import difflib
from collections.abc import Iterator

from farm.errors import UnreadableFile
from farm.fault import Owner
from farm.layout import find_package
from farm.pipeline.stage import Finding
from farm.recipes import Validated
from farm.recipes.cutile_rs import rust
from farm.recipes.cutile_rs.inventory import registrations, test_files
from farm.recipes.cutile_rs.registration import add_import, add_module, declared_modules, imported_ops
from farm.recipes.cutile_rs.review import means_the_same
from farm.recipes.cutile_rs.stages.tools import finding, workspace_tree
from farm.recipes.cutile_rs.syntax import Source, read_source
from farm.recipes.cutile_rs.targetless import without_target
from farm.recipes.cutile_rs.testfile import add_backend
from farm.recipes.cutile_rs.validators.case import Case, bad, good
from farm.tree import Tree


def registration(case: Case) -> Validated:
    """Import, crate's module and tests' parameter are there; the wrapper registers what the source does."""
    try:
        found = tuple(_problems(case, workspace_tree(case.io)))
    except UnreadableFile as error:
        item = Finding(
            file=error.file, line=error.line, column=error.column, construct=None, message=str(error), advice=None
        )
        return bad(Owner.HOST, str(error), item)
    if found:
        return bad(Owner.HOST, f"{found[0].file}: {found[0].message}", *found)
    return good(
        f"{case.op.name} is imported, included and parametrised; it registers {', '.join(case.op.registered)}"
    )


def _problems(case: Case, tree: Tree) -> Iterator[Finding]:
    package = find_package(tree, case.layout)
    name, target = case.op.name, case.layout.target
    lines, modules = package.path(case.layout.registration), package.path(case.layout.modules)
    wrapper = f"{package.target_folder}/{name}.py"
    if wrapper not in tree:
        yield finding("it is not there", "write the op's wrapper", wrapper)
    else:
        missing = sorted(set(case.op.registered) - set(registrations(read_source(tree, wrapper), target)))
        if missing:
            yield finding(
                f"it registers no {', '.join(missing)} for {target}", "register every name of the source", wrapper
            )
    if lines not in tree or name not in imported_ops(read_source(tree, lines)):
        yield finding(f"it does not import {name}", f"add `from . import {name}` in its sorted place", lines)
    elif not means_the_same(lines, tree[lines].data, add_import(read_source(tree, lines), name, target)):
        yield finding(f"the import of {name} is not where others are", "move it beside the others", lines)
    if modules not in tree or name not in declared_modules(tree[modules].data):
        block = add_module(b"", name, package).decode().strip()
        yield finding(f"it has no module {name}", f"append: {block}", modules)
    else:
        alone = add_module(b"", name, package)
        text = tree[modules].data.decode("utf-8", "replace")
        span = next(span for found, span in rust.modules(text) if found == name)
        if rust.code_tokens(text[span.start : span.end]) != rust.code_tokens(alone.decode()):
            yield finding(f"module {name} holds something else", f"write: {alone.decode().strip()}", modules)
    for path in test_files(tree, package, name):
        source = read_source(tree, path)
        bare = Source(path, without_target(source, target))
        wanted = add_backend(bare, package).data
        if not means_the_same(path, source.data, wanted):
            lines = "\n".join(_added(bare.data, wanted))
            message = f"a list of backends lacks {target}, or is lengthened in another way than the patch may"
            yield finding(message, f"add exactly these lines, where they belong:\n{lines}", path)


def _added(before: bytes, after: bytes) -> Iterator[str]:
    """The lines that come to a file."""
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    return (line[2:] for line in difflib.ndiff(old, new) if line.startswith("+ "))

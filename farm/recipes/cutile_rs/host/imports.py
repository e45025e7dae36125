"""Import statements of a generated wrapper, in the order and form that the target repo's isort wants."""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator

from farm.recipes.cutile_rs.host.module import Imported
from farm.tree import Tree

#: Two imports from one module, one below the other.
_REPEATED = re.compile(rb"^(from [\w.]+ import )[^(,\n]+\n\1[^(,\n]+$", re.MULTILINE)


def single_line(tree: Tree, root: str) -> bool:
    """Whether imports name one thing each: by the repo's settings, else by the look of the package."""
    return _forced(tree) or any(
        path.startswith(f"{root}/") and path.endswith(".py") and _REPEATED.search(entry.data) is not None
        for path, entry in tree.items()
    )


def _forced(tree: Tree) -> bool:
    entry = tree.get("pyproject.toml")
    if entry is None:
        return False
    try:
        tool = tomllib.loads(entry.data.decode("utf-8", "replace")).get("tool", {})
    except tomllib.TOMLDecodeError:
        return False
    ruff = tool.get("ruff", {})
    settings = [ruff.get("lint", {}).get("isort", {}), ruff.get("isort", {}), tool.get("isort", {})]
    return any(item.get("force-single-line") or item.get("force_single_line") for item in settings)


def import_block(imported: Iterable[Imported], package: str, *, one_per_line: bool) -> str:
    """The statements, sorted into future, standard, third-party and own sections."""
    sections: dict[int, set[Imported]] = {}
    for item in imported:
        sections.setdefault(_section(item.module, package), set()).add(item)
    blocks = ("\n".join(_statements(sections[key], one_per_line)) for key in sorted(sections))
    return "\n\n".join(blocks)


def _section(module: str, package: str) -> int:
    top = module.split(".")[0]
    if top == "__future__":
        return 0
    if top in sys.stdlib_module_names:
        return 1
    return 3 if top == package else 2


def _statements(items: set[Imported], one_per_line: bool) -> Iterator[str]:
    plain = sorted((item for item in items if item.name is None), key=lambda item: item.module.lower())
    yield from (f"import {item.module}" + (f" as {item.alias}" if item.alias else "") for item in plain)
    named: dict[str, list[Imported]] = {}
    for item in items:
        if item.name is not None:
            named.setdefault(item.module, []).append(item)
    for module in sorted(named, key=str.lower):
        members = [_member(item) for item in sorted(named[module], key=lambda item: _order(item.name or ""))]
        if one_per_line:
            yield from (f"from {module} import {member}" for member in members)
        else:
            yield from _joined(module, members)


def _joined(module: str, members: list[str]) -> Iterator[str]:
    line = f"from {module} import {', '.join(members)}"
    if len(line) <= 88:
        yield line
    else:
        yield f"from {module} import ("
        yield from (f"    {member}," for member in members)
        yield ")"


def _member(item: Imported) -> str:
    return f"{item.name} as {item.alias}" if item.alias else item.name or ""


def _order(name: str) -> tuple[int, str]:
    if name.isupper() and len(name) > 1:
        return 0, name
    return (1 if name[:1].isupper() else 2), name.lower()

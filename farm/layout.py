"""The layout of a target repo that is a Python package with several backends.

Path templates from the recipe, filled in by reading a tree. Conversions of other repos bring a class of their own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from farm.errors import RepositoryError
from farm.tree import Tree

#: Fields that hold path templates.
PATHS = ("registration", "modules", "helpers", "tests", "implementation", "change_set", "withhold", "library")
#: Fields that hold templates of import names.
MODULES = ("registry", "benchmark", "comparison")
#: What a path template and a template of an import name may hold between braces.
PLACEHOLDERS = frozenset({"package", "op"})
MODULE_PLACEHOLDERS = frozenset({"module"})


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The table `[layout]` of recipe.toml. What the gates on a GPU alone need may be left out; they say so then.

    Paths in `package_holds`, `source_folder` and `target_folder` are relative to the package. The others
    are relative to the repository and may hold `{package}` and `{op}`; `tests`, `implementation` and
    `withhold` are globs in which `*` stays inside a folder and `**` does not.
    """

    #: For the check of recipe files, which pydantic does.
    __pydantic_config__ = {"extra": "forbid"}

    source: str  #: source backend, e.g. `cutile`
    target: str  #: target backend, e.g. `cutile-rs`
    package_holds: tuple[str, ...]  #: folders by which the package is recognised
    source_folder: str  #: folder of the source implementations
    target_folder: str  #: folder of the target implementations
    registration: str  #: Python file that imports the target implementations
    modules: str  #: Rust file that declares the ops' modules
    helpers: str  #: Python module file with the target backend's helper functions
    tests: tuple[str, ...]  #: test files of an op
    implementation: tuple[str, ...]  #: files of an op's target implementation
    change_set: tuple[str, ...]  #: paths that a patch for an op may touch, beside its test files
    withhold: tuple[str, ...] = ()  #: text that may hold answers
    #: what an op's wrapper may import beside the package; empty: its host code is not reviewed
    wrapper_imports: tuple[str, ...] = ()
    perf: tuple[str, ...] = ()  #: names of test functions that measure and compare nothing
    siblings: dict[str, tuple[str, ...]] = field(default_factory=dict)  #: op to look-alike ops
    registry: str = ""  #: `module:attribute` of the dict op name -> backend -> function; gates only
    source_dsl: str = ""  #: import name of the source language, e.g. `cuda.tile`; gates only
    library: str = ""  #: where the built library is looked for; gates only
    benchmark: str | None = None  #: `module:function` to which perf rows give what they time
    comparison: str | None = None  #: `module:Class.method` that gets the op's call and its reference
    environment: dict[str, str] = field(default_factory=dict)  #: of every process of a gate
    target_environment: dict[str, str] = field(default_factory=dict)  #: and of those where the target runs

    @staticmethod
    def problems(table: Mapping[str, Any]) -> Iterator[str]:
        """See farm.recipes.Layout."""
        paths = {name: _texts(table.get(name)) for name in PATHS}
        for name, texts in paths.items():
            for unknown in sorted(
                {word for text in texts for word in re.findall(r"{(.*?)}", text)} - PLACEHOLDERS
            ):
                yield f"{name}: {{{unknown}}} is unknown, paths may hold {{package}} and {{op}}"
        for name in MODULES:
            words = {word for text in _texts(table.get(name)) for word in re.findall(r"{(.*?)}", text)}
            for unknown in sorted(words - MODULE_PLACEHOLDERS):
                yield f"{name}: {{{unknown}}} is unknown, names may hold {{module}}"
            if any(text.count(":") != 1 for text in _texts(table.get(name)) if text):
                yield f"{name}: it is not of the form `module:name`"
        for name in ("package_holds", "tests", "implementation", "change_set"):
            if table.get(name) == []:
                yield f"{name}: it is empty"
        for name in ("tests", "implementation"):
            yield from (f"{name}: {text!r} lacks {{op}}" for text in paths[name] if "{op}" not in text)
        for name in ("registration", "modules"):
            yield from (
                f"change_set: it lacks {text!r}" for text in paths[name] if text not in paths["change_set"]
            )


def _texts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))


@dataclass(frozen=True, kw_only=True)
class Package:
    """The Python package of a target repo, and the layout's templates filled in for it."""

    root: str  #: folder of the package, e.g. `src/tilegym`
    name: str  #: import name, e.g. `tilegym`
    layout: Layout

    @property
    def source_folder(self) -> str:
        """Folder of the source implementations, relative to the repository."""
        return f"{self.root}/{self.layout.source_folder}"

    @property
    def target_folder(self) -> str:
        """Folder of the target implementations, relative to the repository."""
        return f"{self.root}/{self.layout.target_folder}"

    def path(self, template: str, op: str = "") -> str:
        """The template with `{package}` and `{op}` filled in."""
        return template.replace("{package}", self.root).replace("{op}", op)

    def module(self, template: str) -> str:
        """The template of an import name with `{module}` filled in."""
        return template.replace("{module}", self.name)

    def matches(self, tree: Iterable[str], templates: Iterable[str], op: str = "") -> tuple[str, ...]:
        """The paths that one of the glob templates matches, sorted."""
        patterns = [glob_pattern(self.path(template, op)) for template in templates]
        return tuple(sorted(path for path in tree if any(p.fullmatch(path) for p in patterns)))

    def module_path(self, path: str) -> str:
        """Import name of a Python file of the package, e.g. `tilegym.ops.cutile.relu`."""
        inner = path.removeprefix(f"{self.root}/").removesuffix(".py").removesuffix("/__init__")
        return ".".join((self.name, *inner.split("/")))


def find_package(tree: Tree, layout: Layout) -> Package:
    """The package of a tree: the folder that holds all of `package_holds`.

    Raises RepositoryError saying what was looked for when there is none, or more than one.
    """
    wanted = " and ".join(f"`{folder}`" for folder in layout.package_holds)
    roots = _roots(tree, layout.package_holds[0])
    for folder in layout.package_holds[1:]:
        roots &= _roots(tree, folder)
    if not roots:
        raise RepositoryError(f"the repository has no folder that holds {wanted}; check --repo and --recipe")
    if len(roots) > 1:
        raise RepositoryError(f"several folders hold {wanted}: {', '.join(sorted(roots))}; the recipe wants one")
    root = roots.pop()
    return Package(root=root, name=root.rsplit("/", 1)[-1], layout=layout)


def _roots(tree: Tree, folder: str) -> set[str]:
    inner = f"/{folder}/"
    return {path[: path.index(inner)] for path in tree if inner in path}


def glob_pattern(glob: str) -> re.Pattern[str]:
    """A compiled glob: `*` and `?` stay inside a folder, `**/` is any depth, a last `**` anything below."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts), re.DOTALL)

"""What a patch did to a tree: files of the candidate, and files that no patch may touch."""

import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from containers.box.gate.subject import Subject

#: Files by which pytest or Python itself is steered, wherever they lie.
STEERING = frozenset(
    {
        "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini",
        "setup.cfg", "setup.py", "sitecustomize.py", "usercustomize.py",
    }
)  # fmt: skip
_LEFT_OUT = frozenset({".git", "__pycache__", "target", ".pytest_cache"})


def changed_files(subject: Subject) -> tuple[str, ...]:
    """Paths, relative to a tree, of files that differ between both trees or are in one alone; sorted.

    Builds (`target`, caches) and the library's place are left out.
    """
    bare, patched = set(_files(subject.bare)), set(_files(subject.patched))
    either = (bare | patched) - {subject.library_place}
    return tuple(sorted(name for name in either if not _equal(subject.bare / name, subject.patched / name)))


def forbidden(subject: Subject, changed: tuple[str, ...]) -> tuple[str, ...]:
    """Of the changed files, those that would let a patch judge itself; the op's own tests may add a parameter."""
    roots = {PurePosixPath(test).parts[0] for test in subject.tests}
    return tuple(
        name
        for name in changed
        if name not in subject.tests
        and (
            PurePosixPath(name).parts[0] in roots or PurePosixPath(name).name in STEERING or name.endswith(".pth")
        )
    )


def candidate_files(tree: Path, tests: Collection[str], changed: Collection[str]) -> tuple[str, ...]:
    """Absolute paths, in `tree`, of the Python files that the patch brought or changed, tests left out."""
    return tuple(
        str(tree / name)
        for name in changed
        if name.endswith(".py") and name not in tests and (tree / name).is_file()
    )


def tree_with_shim(subject: Subject, folder: Path) -> Path:
    """A copy of the patched tree in the new `folder`, with the shim where it looks for its library; resolved."""
    shutil.copytree(subject.patched, folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".git"))
    place = folder / subject.library_place
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    shutil.copyfile(subject.shim, place)
    return folder.resolve()


def _files(tree: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        inside = Path(parent).relative_to(tree)
        yield from ((inside / name).as_posix() for name in names)


def _equal(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and os.readlink(one) == os.readlink(other)
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()

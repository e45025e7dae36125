"""From a bundle to subjects: trees side by side in a scratch folder, libraries at their places."""

import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from containers.box.gate.subject import Subject
from farm.bundle import Bundle, BundleSubject, unpacked
from farm.errors import BundleRefused, PatchConflict, PatchRefused
from farm.patch import Patch, apply_patch
from farm.tree import Entry, Mode, Tree, tree_digest, write_tree


def unpack(bundle: Path, item: BundleSubject, work: Path) -> None:
    """Write a subject's trees and libraries below `work`, anew. Raises BundleRefused when they are others."""
    folder = work / item.id
    shutil.rmtree(folder, ignore_errors=True)
    bare, patched = trees(bundle, item)
    write_tree(bare, folder / "bare")
    write_tree(patched, folder / "patched")
    for name in ("library", "shim", "stub"):
        _library(bundle, getattr(item, name), folder / "libs" / f"{name}.so")
    # Written last: the repo takes a library that is older than its sources for a stale one.
    place = folder / "patched" / item.names.library_place
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / "libs" / "library.so", place)


def trees(bundle: Path, item: BundleSubject) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The bare base and the judged tree of a subject. Raises BundleRefused."""
    try:
        base = apply_patch({}, Patch.from_bytes(unpacked(bundle, item.tree)))
        bare = apply_patch(base, Patch.from_bytes((bundle / item.hidden).read_bytes()))
        judged = apply_patch(bare, Patch.from_bytes((bundle / item.judged).read_bytes()))
    except (PatchConflict, PatchRefused) as error:
        raise BundleRefused(f"{item.id}: its trees do not fit together: {error}") from error
    if (tree_digest(bare), tree_digest(judged)) != (item.bare_digest, item.judged_digest):
        raise BundleRefused(f"{item.id}: its trees are not the ones that the manifest names")
    return bare, judged


def subject(item: BundleSubject, work: Path) -> Subject:
    """A subject that `unpack` has written below `work`."""
    folder, names = work / item.id, item.names
    return Subject(
        id=item.id,
        op=item.op,
        source=names.source,
        target=names.target,
        bare=folder / "bare",
        patched=folder / "patched",
        package=names.package,
        package_path=names.package_path,
        tests=names.tests,
        registry=names.registry,
        source_module=names.source_module,
        target_module=names.target_module,
        source_dsl=names.source_dsl,
        library_place=names.library_place,
        library=folder / "libs" / "library.so",
        shim=folder / "libs" / "shim.so",
        stub=folder / "libs" / "stub.so",
        entries=names.entries,
        perf=names.perf,
        benchmark=names.benchmark,
        comparison=names.comparison,
        environment=dict(names.environment),
        target_environment=dict(names.target_environment),
    )


#: Files that Python, pytest or the loader would take up from a tree that lacked them.
_TAKEN_UP = (".py", ".pth", ".so", ".ini", ".toml", ".cfg")


def tampered(tree: Tree, folder: Path, *, made: Collection[str] = ()) -> Iterator[str]:
    """Paths of a tree in `folder` that are not as they were written, or were added and would be run or obeyed.

    `made` are files that belong there beside the tree. What else a run leaves, such as caches, is no matter.
    """
    for path, entry in tree.items():
        place = folder / path
        if place.is_symlink() is not (entry.mode is Mode.LINK) or _content(place) != entry.data:
            yield path
    for place in sorted(folder.rglob("*")):
        path = place.relative_to(folder).as_posix()
        if path not in tree and path not in made and path.endswith(_TAKEN_UP) and "__pycache__" not in path:
            yield path


def _content(place: Path) -> bytes | None:
    if place.is_symlink():
        return os.fsencode(os.readlink(place))
    return place.read_bytes() if place.is_file() else None


def source_tampered(bundle: Path, item: BundleSubject, work: Path) -> tuple[str, ...]:
    """What the candidate's processes changed of a subject's bare base and libraries, which are not theirs."""
    bare, _ = trees(bundle, item)
    folder = work / item.id
    found = [f"bare/{path}" for path in tampered(bare, folder / "bare")]
    for name in ("library", "shim", "stub"):
        place = folder / "libs" / f"{name}.so"
        if not place.is_file() or place.read_bytes() != unpacked(bundle, getattr(item, name)):
            found.append(f"libs/{name}.so")
    return tuple(found)


def unpack_collector(bundle: Path, manifest: Bundle, work: Path) -> Path | None:
    """The collector's library below `work`, or None when the bundle has none."""
    if manifest.collector is None:
        return None
    place = work / "libs" / "collector.so"
    _library(bundle, manifest.collector, place)
    return place


def _library(bundle: Path, name: str, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(unpacked(bundle, name))
    place.chmod(0o755)

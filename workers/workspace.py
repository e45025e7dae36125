"""Workspaces: a bare base on disk, as a repository of one commit and nothing else."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from containers.access import box_user, give
from farm.hiding import Bare
from farm.tree import Entry, Tree, sha256, tree_digest, write_tree
from workers.gitrepo import Author, Git, list_objects, reachable, read_objects, write_commit


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A folder that a box may have, before any box had it."""

    folder: Path  #: what is mounted, writable
    commit: str  #: its one commit
    tree: Mapping[str, Entry]  #: what it holds
    digest: str  #: tree_digest of that


def visible(bare: Bare) -> dict[str, Entry]:
    """The bare base as a box sees it: without the withheld files."""
    withheld = frozenset(bare.withheld)
    return {path: entry for path, entry in bare.tree.items() if path not in withheld}


def make_workspace(at: Git, tree: Tree, folder: Path, when_s: int) -> Workspace:
    """Write a tree into a new folder with one fresh commit: no remote, no reflog, no other object.

    What is already in `folder` is removed: a crashed attempt may have left half of it. It all becomes the
    box's user's.
    """
    if folder.exists():
        shutil.rmtree(folder)
    write_tree(tree, folder)
    inner = folder / ".git"
    at.must(None, "init", "--quiet", "--template=", "--initial-branch=main", str(folder))
    message = "The tree to start from\n"
    commit = write_commit(at, inner, "refs/heads/main", tree, None, message, Author(), when_s)
    at.must(inner, f"--work-tree={folder}", "read-tree", "HEAD")
    give_to_box(folder)
    return Workspace(folder=folder, commit=commit, tree=dict(tree), digest=tree_digest(tree))


def write_box_tree(tree: Tree, folder: Path) -> None:
    """Write a tree that a box may change, without a repository: what a gate judges."""
    if folder.exists():
        shutil.rmtree(folder)
    write_tree(tree, folder)
    give_to_box(folder)


def give_to_box(folder: Path) -> None:
    """Make a folder with everything in it the box's user's, who is this worker itself unless that is root."""
    give(folder, box_user(os.geteuid(), os.getegid()))


@dataclass(frozen=True, kw_only=True)
class ForeignObject:
    """An object in a workspace's repository that its one commit does not need."""

    id: str
    kind: str  #: `blob tree commit tag`
    sha256: str  #: of its content
    data: bytes  #: its content


def foreign_objects(at: Git, workspace: Workspace) -> tuple[ForeignObject, ...]:
    """Every object of the workspace's repository beyond its one commit, packed, loose or borrowed.

    Git runs here: to be called before a box has had the folder, never after.
    """
    inner = workspace.folder / ".git"
    found = list_objects(at, inner)
    foreign = sorted(found.keys() - reachable(at, inner, workspace.commit))
    contents = read_objects(at, inner, foreign) if foreign else {}
    return tuple(
        ForeignObject(id=name, kind=found[name], sha256=sha256(contents[name]), data=contents[name])
        for name in foreign
    )

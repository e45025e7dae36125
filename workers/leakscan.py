"""The leak scan of a job: its workspace with its repository, and every mount of its box."""

from collections.abc import Sequence
from pathlib import Path

from farm.errors import LeakFound
from farm.hiding import Bare
from farm.leak import Leak, LeakKind, LeakReport, LeakScan, ScannedPlace, report
from farm.mountindex import Mount, open_index
from workers.gitrepo import Git
from workers.workspace import Workspace, foreign_objects


def scan(
    at: Git, scanner: LeakScan, bare: Bare, workspace: Workspace, mounts: Sequence[Mount], cache: Path
) -> LeakReport:
    """Look through everything that the box of a workspace will be able to read.

    Must run before a box has had the workspace. Indexes of mounts are kept under `cache`.
    """
    answer = scanner.answer(bare, workspace.tree)
    leaks, mentions = (list(found) for found in scanner.workspace(answer, workspace.tree))
    for item in foreign_objects(at, workspace):
        hidden = answer.blobs.get(item.sha256, "an object beyond the one commit")
        detail = f"{item.kind} of {len(item.data)} bytes"
        path = f".git/objects/{item.id}"
        leaks.append(Leak(kind=LeakKind.OBJECT, place="workspace", path=path, hidden=hidden, detail=detail))
    places = [_workspace_place(workspace)]
    for mount in mounts:
        index = open_index(mount, cache)
        found, said = index.leaks(answer)
        leaks += found
        mentions += said
        places.append(index.place)
    return report(bare, leaks, mentions, places)


def require_clean(found: LeakReport) -> None:
    """Raises LeakFound, naming the first places, unless the report is clean."""
    if found.clean:
        return
    shown = "; ".join(
        f"{leak.place}: {leak.path} gives away {leak.hidden} ({leak.detail})" for leak in found.findings[:3]
    )
    more = len(found.findings) - 3
    rest = f"; and {more} more" if more > 0 else ""
    raise LeakFound(
        f"the box could read the hidden implementation: {shown}{rest}; remove it or add a hide rule"
    )


def _workspace_place(workspace: Workspace) -> ScannedPlace:
    size = sum(len(entry.data) for entry in workspace.tree.values())
    return ScannedPlace(
        name="workspace", digest=workspace.digest, files=len(workspace.tree), bytes=size, unsearched=0
    )

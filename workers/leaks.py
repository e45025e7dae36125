"""The leak scan of a job: its workspace with its repository, and every mount of its box."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from containers.toolchain import Toolchain
from containers.toolchain.visible import visible_folders
from farm.hiding import Bare
from farm.leak import Leak, LeakKind, LeakReport, LeakScan, ScannedPlace, report
from farm.mountindex import Mount, MountIndex, open_index
from workers.workspace import ForeignObject, Workspace

#: An index that was found up to date is trusted for so long: the farm alone writes to these folders, and only
#: when it installs a toolchain or compiles a crate's dependencies. A new entry of a folder is seen at once.
TRUSTED_S = 60.0


class _Opened(NamedTuple):
    opened: MountIndex
    state: tuple[int, int]  #: of the mount's folder when it was opened
    at: float  #: when it was opened, seconds


class LeakScanner:
    """Looks through everything that a box will be able to read; indexes of mounts are kept in a folder."""

    def __init__(
        self,
        cache: Path,
        toolchain: Toolchain | None,
        more: Sequence[Mount] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`toolchain` gives the folders that every box gets; `more` names further ones."""
        self._cache = cache
        self._clock = clock
        self._opened: dict[Path, _Opened] = {}
        self._mounts = (*(() if toolchain is None else visible_folders(toolchain)), *more)
        self._scan = LeakScan()

    def prepare(self) -> tuple[ScannedPlace, ...]:
        """Build the indexes that are missing or out of date, so that no job has to; what they hold."""
        return tuple(open_index(mount, self._cache).place for mount in self._mounts)

    def scan(
        self,
        bare: Bare,
        workspace: Workspace,
        foreign: Sequence[ForeignObject],
        source: Sequence[str],
        own: Sequence[Mount] = (),
    ) -> LeakReport:
        """The certificate, or what is wrong.

        `foreign` are the objects that the repository should not have, `source` the paths of the op's source
        implementation, `own` the mounts that this job's box has beside those of every box.
        """
        answer = self._scan.answer(bare, workspace.tree, source)
        leaks, mentions = (list(found) for found in self._scan.workspace(answer, workspace.tree))
        leaks += (_object_leak(item, answer.blobs.get(item.sha256)) for item in foreign)
        places = [_workspace_place(workspace)]
        for mount in (*self._mounts, *own):
            index = self._index(mount)
            leaks += index.leaks(answer)
            places.append(index.place)
        return report(bare, leaks, mentions, places)

    def _index(self, mount: Mount) -> MountIndex:
        """The mount's index; that it is up to date was checked a short while ago at most."""
        status = mount.folder.stat()
        state, now = (status.st_ino, status.st_mtime_ns), self._clock()
        known = self._opened.get(mount.folder)
        if known is None or known.state != state or now - known.at > TRUSTED_S:
            known = _Opened(open_index(mount, self._cache), state, now)
            self._opened[mount.folder] = known
        return known.opened


def _object_leak(item: ForeignObject, hidden: str | None) -> Leak:
    return Leak(
        kind=LeakKind.OBJECT,
        place="workspace",
        path=f".git/objects/{item.id}",
        hidden=hidden or "an object beyond the one commit",
        detail=f"{item.kind} of {len(item.data)} bytes",
    )


def _workspace_place(workspace: Workspace) -> ScannedPlace:
    size = sum(len(entry.data) for entry in workspace.tree.values())
    return ScannedPlace(
        name="workspace", digest=workspace.digest, files=len(workspace.tree), bytes=size, unsearched=0
    )

"""What of a toolchain a box can read, and the index of it that leak scans ask."""

from collections.abc import Callable
from pathlib import Path

from containers.toolchain import Toolchain
from farm.mountindex import Mount, open_index


def visible_folders(toolchain: Toolchain) -> tuple[Mount, ...]:
    """The folders of a toolchain that a box sees, each under the name of what leads to it."""
    names = {toolchain.root: "toolchain", toolchain.cargo_home: "cargo registry", toolchain.warm: "warm builds"}
    names |= {toolchain.rust: "rust", toolchain.cuda: "cuda"}
    masked = toolchain.masked_folders()
    return tuple(
        Mount(
            name=names.get(path, path.name),
            folder=path,
            without=tuple(mask for mask in masked if mask.is_relative_to(path)),
        )
        for path in toolchain.mount_folders()
    )


def index_folder(toolchain: Toolchain) -> Path:
    """Where the indexes of this toolchain's folders are kept, for all farms of the user."""
    return toolchain.root.parent / "leak-index"


def prepare_index(toolchain: Toolchain, say: Callable[[str], None]) -> None:
    """Index what boxes can read, so that no job has to; a minute or two at first, seconds later."""
    done = index_folder(toolchain) / f"{toolchain.record.digest}.done"
    if not done.exists():
        say("indexing what boxes can read, for the leak scan")
    for mount in visible_folders(toolchain):
        open_index(mount, index_folder(toolchain))
    done.touch()

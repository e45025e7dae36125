"""Folders for sockets: a socket's path is short, a state folder's may be long."""

import hashlib
import os
import stat
from pathlib import Path

from farm.errors import ConfigurationError
from farm.settings import runtime_home

#: Longest path that a Unix socket may have on Linux, bytes.
SOCKET_PATH_BYTES = 107


def fits(socket: Path) -> bool:
    """Whether a socket can have this path."""
    return len(os.fsencode(socket)) <= SOCKET_PATH_BYTES


def socket_path(state: Path, name: str) -> Path:
    """Where a socket of this state folder's farm lies: in its `run`, or in a private folder with a short path.

    The same for the same state folder. The folder that holds it is made. Raises ConfigurationError.
    """
    socket = state / "run" / name
    if not fits(socket):
        socket = _short_folder(state, name) / name
    socket.parent.mkdir(parents=True, exist_ok=True)
    return socket


def _short_folder(state: Path, name: str) -> Path:
    digest = hashlib.sha256(os.fsencode(state.resolve())).hexdigest()[:12]
    runtime = runtime_home()
    candidates = [] if runtime is None else [runtime / f"tilefarm-{digest}"]
    candidates += [Path("/tmp") / f"tilefarm-{os.getuid()}-{digest}"]
    for folder in candidates:
        if fits(folder / name) and _private(folder):
            return folder
    raise ConfigurationError(
        f"the state folder's path is too long for a socket and {candidates[-1]} is not ours alone; "
        "set TILEFARM_STATE to a shorter path"
    )


def _private(folder: Path) -> bool:
    # Anybody may make names in /tmp: only a folder of ours that nobody else can enter is used.
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700

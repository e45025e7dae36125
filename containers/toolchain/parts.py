"""How parts of a toolchain come into being: named by content, whole or not at all, one maker at a time."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from farm.errors import ToolchainMissing

#: Folders that builds leave inside a source folder and that are no source.
NOT_SOURCE = frozenset({"target", "__pycache__", ".git"})


def key_of(parts: Iterable[bytes]) -> str:
    """16 hex digits that name these byte strings in this order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:16]


def folder_bytes(folder: Path) -> Iterator[bytes]:
    """Names, execute bits and contents of a source folder's files, sorted, without build output."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not NOT_SOURCE.intersection(inside.parts):
            yield str(inside).encode("utf-8", "surrogateescape")
            yield b"x" if os.access(path, os.X_OK) else b"-"
            yield path.read_bytes()


@contextlib.contextmanager
def locked(root: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the root's lock; a second holder waits and says so."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another install is running here; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def publish(final: Path, make: Callable[[Path], None]) -> Path:
    """`final`, made by `make` in a folder beside it and renamed; an interrupted make leaves no `final`."""
    if final.exists():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        temporary.chmod(0o755)
        make(temporary)
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return final


def sweep(folder: Path) -> None:
    """Remove what interrupted makers left in `folder`; call it with the lock held."""
    for leftover in folder.glob(".*-*") if folder.is_dir() else ():
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)


def point(link: Path, target: str) -> None:
    """Make `link` lead to `target`, atomically, whatever it was before."""
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.rename(link)


def step(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, doing: str, advice: str) -> str:
    """Run a step of the install; its stdout. Raises ToolchainMissing with the output's end and the advice."""
    try:
        done = subprocess.run(
            argv, env=dict(env), cwd=cwd, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise ToolchainMissing(f"{doing}: {argv[0]} is not there; {advice}") from error
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise ToolchainMissing(f"{doing}: {Path(argv[0]).name} exited {done.returncode}; {advice}\n{tail}")
    return done.stdout

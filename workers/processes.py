"""Processes that outlive a command: started detached, found again by pid and start time."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.codec import CodecError, decode, encode

# Our own folder goes first, and the current one is not looked at: it may hold a `workers` of its own.
_LAUNCH = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv = sys.argv[2:]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Which process it is, so that a pid that was given to another one is not mistaken for it."""

    pid: int
    start_ticks: int  #: clock ticks from boot to its start
    boot: str  #: id of the machine's boot


def identify(pid: int) -> Identity | None:
    """The identity of a running process, or None when there is none or only its remains."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The name in parentheses may hold anything; what follows the last one does not.
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return Identity(pid=pid, start_ticks=int(fields[19]), boot=boot)


def alive(identity: Identity) -> bool:
    """Whether exactly this process still runs."""
    return identify(identity.pid) == identity


def record(path: Path, pid: int) -> None:
    """Write a process's identity to a file, in one piece."""
    identity = identify(pid)
    if identity is None:
        path.unlink(missing_ok=True)
        return
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(encode(identity)), encoding="utf-8")
    draft.replace(path)


def recorded(path: Path) -> Identity | None:
    """The process that a file names, if it still runs; files of the dead count for nothing."""
    try:
        identity = decode(Identity, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, CodecError):
        return None
    return identity if alive(identity) else None


def python_module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module of ours, whatever the current folder holds."""
    return (sys.executable, "-P", "-c", _LAUNCH, str(Path(__file__).parents[1]), name, *arguments)


def start_detached(argv: Sequence[str], *, log: Path, cwd: Path, env: Mapping[str, str] | None = None) -> int:
    """Start a process in a session of its own, its output appended to a file; its pid. `env`: unset, as ours."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    # It may outlive us; if it does not, its remains are taken away.
    threading.Thread(target=process.wait, name=f"reap {process.pid}", daemon=True).start()
    return process.pid


def stop(identity: Identity, *, grace_s: float) -> None:
    """Ask a process to end, wait, then kill it and whatever is left of its group."""
    _signal(identity, signal.SIGTERM)
    end = time.monotonic() + grace_s
    while alive(identity) and time.monotonic() < end:
        time.sleep(0.02)
    if alive(identity):
        kill_group(identity)


def kill_group(identity: Identity) -> None:
    """SIGKILL a process's whole group when it leads one, else the process."""
    if not alive(identity):
        return
    try:
        if os.getpgid(identity.pid) == identity.pid:
            os.killpg(identity.pid, signal.SIGKILL)
        else:
            os.kill(identity.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _signal(identity: Identity, number: signal.Signals) -> None:
    if alive(identity):
        try:
            os.kill(identity.pid, number)
        except ProcessLookupError:
            return

"""Processes of a gate on a machine without a container engine: what they may have, and their whole end."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Variables that reach a part: where programs and libraries are, and which device to use. CUDA_HOME and
#: CUDA_PATH do not: tileiras would take another CUDA's libnvvm for its own.
PASSED = (
    *("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "CUDA_VISIBLE_DEVICES", "CUTILE_TILEIRAS_PATH"),
    *("CUDA_TOOLKIT_PATH", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
)
UNSHARE_S = 10.0
NOBODY = 65534  #: uid and gid


def environment(host: Mapping[str, str], lib: Path, scratch: Path) -> dict[str, str]:
    """The whole environment of a part's process, whose home and temporary files are below `scratch`."""
    home, tmp = scratch / "home", scratch / "tmp"
    for folder in (home, tmp):
        folder.mkdir(parents=True, exist_ok=True)
    packages = [str(lib), *(entry for entry in host.get("PYTHONPATH", "").split(os.pathsep) if entry)]
    return {
        **{name: host[name] for name in PASSED if name in host},
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
    }


def without_network() -> tuple[str, ...]:
    """What begins a command that then has no network; empty where that is not allowed."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    for words in ((unshare, "--net", "--"), (unshare, "--map-root-user", "--net", "--")):
        try:
            done = subprocess.run((*words, "true"), capture_output=True, timeout=UNSHARE_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return words
    return ()


@dataclass(frozen=True)
class Stranger:
    """A user who owns nothing here."""

    uid: int

    def give(self, folder: Path) -> None:
        """Make a folder with everything in it theirs, links themselves and never what they lead to."""
        os.chown(folder, self.uid, self.uid)
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(os.path.join(parent, name), self.uid, self.uid, follow_symlinks=False)


def somebody_else() -> Stranger | None:
    """Who parts may run as: nobody where the runner is root, else no one but the runner."""
    return Stranger(NOBODY) if os.geteuid() == 0 else None


def isolation(prefix: Sequence[str], stranger: Stranger | None) -> dict[str, str]:
    """What stands between a candidate and this machine, for the evidence."""
    return {
        "engine": "none: the candidate ran in processes of this machine",
        "network": "none (a network namespace of its own)" if prefix else "the machine's: unshare is refused",
        "environment": f"scrubbed: {', '.join(PASSED[:2])} and the like; no other variable of the caller",
        "files": "the machine's; home and temporary files in a scratch folder",
        "user": f"uid {os.geteuid()}, as the runner"
        if stranger is None
        else f"uid {stranger.uid}, with no rights",
    }


def descendants(pid: int) -> list[int]:
    """All processes below a process, as /proc has them now."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def kill_tree(process: "subprocess.Popen[bytes]") -> None:
    """End a process with everything that it started, sessions of their own included."""
    seen: set[int] = set()
    for _ in range(20):
        below = [pid for pid in descendants(process.pid) if pid not in seen]
        for pid in below:
            seen.add(pid)
            _kill(pid)
        if not below:
            break
        time.sleep(0.05)
    _kill(process.pid)
    process.wait()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return

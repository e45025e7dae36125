"""Commands of an agent: with a time limit, and nothing of them left when they are over."""

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

#: Characters of output that an agent is given; the middle is dropped.
SHOWN = 30_000
#: Marks every process of a command, whatever session it moves to.
MARK = "TILEFARM_CALL"


def run(command: str, cwd: Path, limit_s: float, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Its output with its exit code, and whether it failed."""
    mark = secrets.token_hex(8)
    with subprocess.Popen(
        ("/bin/bash", "-c", command),
        cwd=cwd,
        env={**os.environ, **environment, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            raw, _ = process.communicate(timeout=limit_s)
            ending = f"exit {process.returncode}"
        except subprocess.TimeoutExpired:
            _end(mark)
            raw, _ = process.communicate()
            ending = f"killed after {limit_s:.0f} s"
        _end(mark)
    text = shown(raw.decode("utf-8", "replace"))
    return f"{text.rstrip()}\n({ending})".lstrip(), process.returncode != 0


def shown(text: str) -> str:
    """A text as an agent gets it."""
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n[{len(text) - SHOWN} characters dropped]\n{text[-half:]}"


def _end(mark: str) -> None:
    """SIGKILL to every process that has the mark, until there is none."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(50):
        found = [pid for pid in _processes() if wanted in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _environment(pid: int) -> list[bytes]:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return [] if state == b"Z" else Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []

"""The box as stage programs see it: processes with time limits and a log."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from farm.recipes import ProcessResult

#: Characters of a process's output that are kept; the middle is dropped.
OUTPUT_LIMIT = 400_000


class LocalBoxIO:
    """`farm.recipes.BoxIO` over the box's own file system and processes."""

    def __init__(self, *, workspace: Path, out: Path, toolchain: Path, log: Path) -> None:
        self.workspace = workspace
        self.out = out
        self.toolchain = toolchain
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)

    def run(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> ProcessResult:
        """Run a process in a session of its own; at the time limit the whole session is killed."""
        started = time.monotonic()
        self.log(f"$ {' '.join(argv)}")
        with subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            timed_out = False
            try:
                raw, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                timed_out = True
                os.killpg(process.pid, signal.SIGKILL)
                raw, _ = process.communicate()
        seconds = time.monotonic() - started
        output = _bounded(raw.decode("utf-8", errors="replace"))
        ending = "timed out" if timed_out else f"exit {process.returncode}"
        self.log(f"{output.rstrip()}\n({ending}, {seconds:.1f} s)")
        return ProcessResult(exit_code=process.returncode, output=output, timed_out=timed_out, seconds=seconds)

    def log(self, text: str) -> None:
        """Append a line to the stage's log."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")


def _bounded(text: str) -> str:
    if len(text) <= OUTPUT_LIMIT:
        return text
    half = OUTPUT_LIMIT // 2
    return f"{text[:half]}\n... {len(text) - OUTPUT_LIMIT} characters dropped ...\n{text[-half:]}"

"""One child process that runs rows, seen from its parent."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from containers.box.gate.processes import PASSED, kill_tree
from containers.box.gate.rows.activity import Recorder
from containers.box.gate.rows.messages import Command, Noise, Request, line, parsed
from containers.interpose import COUNTS, Counts
from farm.codec import encode

LIB = Path(__file__).resolve().parents[4]
#: What a child keeps of the environment; repositories' and pytest's own variables are not among it.
_KEPT = (*PASSED, "TMPDIR", "USER", "LOGNAME")
_END_S = 20  #: a child is given for its last words


def base_environment(home: Path) -> dict[str, str]:
    """The environment of a process that runs code of a repository; `home` is its own."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    paths = [str(LIB), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    return kept | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "HOME": str(home),
    }


class Worker:
    """A child, what it is doing, and since when. Messages arrive in `inbox` as (worker, message or None)."""

    def __init__(
        self,
        *,
        request: Request,
        environment: Mapping[str, str],
        folder: Path,
        number: int,
        python: str,
        recorder: Recorder,
        inbox: "queue.Queue[tuple[Worker, Any]]",
    ) -> None:
        self.recorder = recorder
        self.counts = Counts(folder / f"counts-{number}")
        self.log = folder / f"log-{number}"
        self.current: Command | None = None
        self._ordered = 0
        self.calls_before = 0
        self.since = time.monotonic()
        self.collected = False
        self.ended = False  #: its pipe is at the end
        self.stopping = False
        wanted = folder / f"request-{number}.json"
        wanted.write_text(json.dumps(encode(request)))
        incoming, self._outgoing = os.pipe()
        reading, outgoing = os.pipe()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, "-P", "-m", "containers.box.gate.rows.child", wanted, str(incoming), str(outgoing)],
                cwd=request.tree,
                env={**environment, COUNTS: str(self.counts.path), **recorder.environment},
                pass_fds=(incoming, outgoing, *recorder.inherited),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        os.close(incoming)
        os.close(outgoing)
        recorder.started()
        threading.Thread(target=self._read, args=(reading, inbox), daemon=True).start()

    def order(self, command: Command) -> None:
        """Have a row run. A child that is gone is noticed elsewhere."""
        self._ordered += 1
        command = replace(command, number=self._ordered)
        self.current = command
        self.calls_before = self.calls
        self.since = time.monotonic()
        self._write(line(command))

    def stop(self) -> None:
        """Ask for the end."""
        if not self.stopping:
            self.stopping = True
            self.since = time.monotonic()
            os.close(self._outgoing)

    @property
    def calls(self) -> int:
        """Calls of the library's exports so far."""
        return sum(self.counts.read().values())

    @property
    def dead(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    @property
    def late(self) -> bool:
        """Whether it was asked to end and does not."""
        return self.stopping and time.monotonic() - self.since > _END_S

    def end(self) -> None:
        """Kill what is left of it and everything that it started."""
        self.stop()
        kill_tree(self._process)
        self.recorder.close()

    def obituary(self) -> str:
        """How the process ended, with the last line that it printed."""
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = [text.strip() for text in self.log.read_text(errors="replace").splitlines() if text.strip()]
        return f"its process ended with {how}" + (f": {lines[-1][:300]}" if lines else "")

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._outgoing, data)

    def _read(self, reading: int, inbox: "queue.Queue[tuple[Worker, Any]]") -> None:
        with os.fdopen(reading, "rb") as file:
            for text in file:
                try:
                    inbox.put((self, parsed(text)))
                except (ValueError, TypeError, AttributeError):
                    if text.endswith(b"\n"):  # else the child was killed while it wrote
                        inbox.put((self, Noise(text=repr(text[:200]))))
        inbox.put((self, None))

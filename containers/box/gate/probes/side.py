"""A process that runs an op, seen from its parent: started, given orders, ended as a whole at its limit."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from containers import interpose
from containers.box.gate.subject import Subject

#: Where `containers` and `farm` are imported from, here and in the processes.
LIBRARIES = Path(__file__).resolve().parents[4]
#: Settings of the parent that would change what a process imports or how pytest runs.
_DROPPED = ("PYTEST_", "COVERAGE_", "PYTHONWARNINGS")


class ProcessEnded(Exception):
    """The process died or was ended at its limit; the text says how."""


class Side:
    """One process at a time, made when it is first needed and again after an end, at most `starts` times."""

    def __init__(
        self,
        *,
        name: str,
        request: Mapping[str, Any],
        tree: Path,
        path: str,
        environment: Mapping[str, str],
        folder: Path,
    ) -> None:
        """`name` is its own among the files in `folder`."""
        self._name = name
        self._request = request
        self._tree = tree
        self._environment = _environment(tree / path, environment)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._replies = -1
        self._waiting = b""
        self.starts = 0
        self.log = folder / f"{name}.log"

    @property
    def runs(self) -> bool:
        """Whether there is a process now."""
        return self._process is not None

    def start(self, limit_s: float) -> dict[str, Any]:
        """Make a process; gives what it says when it is ready. Raises ProcessEnded."""
        self.starts += 1
        request = self._folder / f"request-{self._name}-{self.starts}.json"
        request.write_text(json.dumps(self._request))
        self._replies, theirs = os.pipe()
        self._waiting = b""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-m", "containers.box.gate.probes.child", str(request), str(theirs)),
                cwd=self._tree,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        os.close(theirs)
        return self._reply(limit_s)

    def order(self, limit_s: float, **order: Any) -> dict[str, Any]:
        """Give an order and wait for its reply. Raises ProcessEnded; a process is to be started anew then."""
        if self._process is None or self._process.stdin is None:
            raise ProcessEnded("there is no process")
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._ended() from None
        reply = self._reply(limit_s)
        if reply.get("broken"):
            self.end()
        return reply

    def end(self) -> None:
        """End the process and all that it started in its session."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        os.close(self._replies)
        self._process = None

    def kill(self) -> None:
        """Kill the process from another thread; the one that waits for its reply sees it die and ends it."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """The last line of the log."""
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return lines[-1][:300] if lines else ""

    def _reply(self, limit_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._waiting:
            ready, _, _ = select.select([self._replies], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                self.end()
                raise ProcessEnded(f"no reply within {limit_s:.0f} s")
            chunk = os.read(self._replies, 1 << 16)
            if not chunk:
                raise self._ended()
            self._waiting += chunk
        line, _, self._waiting = self._waiting.partition(b"\n")
        reply = json.loads(line)
        if not isinstance(reply, dict):
            raise self._ended()
        return reply

    def _ended(self) -> ProcessEnded:
        process = self._process
        if process is None:
            return ProcessEnded("the process died")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        code = process.returncode
        self.end()
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return ProcessEnded(f"the process died ({how})")


def target_side(subject: Subject, name: str, folder: Path) -> Side:
    """A side for the target's implementation, on the patched tree."""
    request = _request(subject, subject.target, subject.target_module)
    return _side(subject, name, folder, request, subject.patched, subject.target_environment)


def source_side(subject: Subject, name: str, folder: Path, **more: Any) -> Side:
    """A side for the source's implementation, on the bare base; `more` goes into its request."""
    request = {**_request(subject, subject.source, subject.source_module), **more}
    return _side(subject, name, folder, request, subject.bare, {})


def _request(subject: Subject, backend: str, module: str) -> dict[str, Any]:
    return {
        "mode": "attempt",
        "backend": backend,
        "package": subject.package,
        "module": module,
        "registry": subject.registry,
    }


def _side(
    subject: Subject, name: str, folder: Path, request: Mapping[str, Any], tree: Path, own: Mapping[str, str]
) -> Side:
    environment = {**interpose.environment(subject.library), **subject.environment, **own}
    return Side(
        name=f"process-{name}",
        request=request,
        tree=tree,
        path=subject.package_path,
        environment=environment,
        folder=folder,
    )


def _environment(package_path: Path, given: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    paths = [str(LIBRARIES), str(package_path), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(paths), **given}

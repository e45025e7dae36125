"""The parent's view of one child: a process, its messages, its device records."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from containers.box.gate.collector import Flush, State
from containers.box.gate.processes import descendants, kill_tree
from containers.box.gate.subject import Subject
from containers.box.gate.timing.order import FIRST_TOKEN
from containers.box.gate.timing.recorder import Recorder
from containers.box.gate.timing.settings import Settings

_LIB = Path(__file__).resolve().parents[4]
_ERROR_BYTES = 1 << 15


class SideProblem(Exception):
    """A side cannot go on with a configuration, in a sentence; `fatal` when its process has to be replaced."""

    def __init__(self, side: str, reason: str, *, fatal: bool) -> None:
        super().__init__(reason)
        self.side, self.reason, self.fatal = side, reason, fatal


class Called(NamedTuple):
    """One call on one side."""

    flush: Flush
    late: int  #: records after the synchronisation
    wall_ns: int
    parent_wall_ns: int
    outputs: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Role:
    """Which child."""

    name: str  #: `source`, `target` or `control`
    tree: Path
    backend: str
    module: str  #: whose functions in the registry are timed
    environment: Mapping[str, str]


def roles(subject: Subject) -> dict[str, Role]:
    """The three children: the control is a second one of the source."""

    def source(name: str) -> Role:
        return Role(
            name=name,
            tree=subject.bare,
            backend=subject.source,
            module=subject.source_module,
            environment=subject.environment,
        )

    target = Role(
        name="target",
        tree=subject.patched,
        backend=subject.target,
        module=subject.target_module,
        environment={**subject.environment, **subject.target_environment},
    )
    return {"source": source("source"), "target": target, "control": source("control")}


class Side:
    """A started child."""

    def __init__(self, role: Role, subject: Subject, settings: Settings, recorder: Recorder) -> None:
        self.role, self._settings, self._recorder = role, settings, recorder
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the side
        self._token = FIRST_TOKEN
        self._buffer = b""
        command_read, self._commands = os.pipe()
        self._replies, reply_write = os.pipe()
        request = {
            "tree": str(role.tree),
            "package_path": subject.package_path,
            "tests": list(subject.tests),
            "perf": list(subject.perf),
            "benchmark": subject.benchmark,
            "registry": subject.registry,
            "backend": role.backend,
            "module": role.module,
            "warmup": settings.warmup,
            "late_s": settings.late_s,
            "flush_factor": settings.flush_factor,
        }
        part = "containers.box.gate.timing.child"
        self._process = subprocess.Popen(
            [settings.python, "-m", part, json.dumps(request), str(command_read), str(reply_write)],
            cwd=role.tree,
            env=_environment({**role.environment, **recorder.variables()}),
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            pass_fds=(command_read, reply_write, *recorder.inherited),
            start_new_session=True,
        )
        os.close(command_read)
        os.close(reply_write)
        recorder.started()
        self.rows: dict[str, Any] = {}
        self.device = ""

    def wait_until_ready(self) -> None:
        """Read what the child collected. Raises SideProblem, also when device records do not come."""
        self.device = str(self._reply("started", self._settings.start_s)["device"])
        first = self._recorder.until(FIRST_TOKEN, self._settings.call_s)
        if first.state not in (State.IDLE, State.COMPLETE):
            said = "; ".join(first.problems) or first.state.name
            raise SideProblem("recorder", f"device records cannot be collected: {said}", fatal=True)
        self.rows = self._reply("rows", self._settings.start_s)

    def survey(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """Calls of the op in the correctness rows: row -> bytes, signature."""
        self._send({"do": "survey", "names": names})
        found = {}
        while (reply := self._any_reply(self._settings.start_s))["event"] == "row":
            found[str(reply["key"])] = reply
        return found

    def open(self, kind: str, key: str, names: list[str], limit_s: float, placement: int) -> dict[str, Any]:
        """Set a configuration up, within `open_s` or the rest of the run; each placement lies elsewhere."""
        self._send({"do": "open", "kind": kind, "key": key, "names": names, "placement": placement})
        return self._reply("open", min(self._settings.open_s, limit_s))

    def close_config(self) -> None:
        """Release what `open` made."""
        self._send({"do": "close"})
        self._reply("closed", self._settings.call_s)

    def call(self, seed: int, *, late: bool) -> tuple[Flush, Called]:
        """Prepare and call once: what ran since the last call's check, and the call."""
        self._send({"do": "prepare", "seed": seed, "token": self._next()})
        self._reply("ready", self._settings.call_s)
        before = self._records()
        token = self._next()
        late_token = self._next() if late else None
        started = time.perf_counter_ns()
        self._send({"do": "call", "token": token, "late": late_token})
        called = self._reply("called", self._settings.call_s)
        parent_wall_ns = time.perf_counter_ns() - started
        flush = self._recorder.until(token, self._settings.call_s)
        after = 0
        if late_token is not None:
            self._reply("late", self._settings.call_s)
            after = len(self._recorder.until(late_token, self._settings.call_s).events)
        checked = self._reply("checked", self._settings.call_s)
        outputs = [dict(output) for output in checked["outputs"]]
        return before, Called(flush, after, int(called["wall_ns"]), parent_wall_ns, outputs)

    def drain(self) -> Flush:
        """What ran since the last call was checked."""
        self._send({"do": "drain", "token": self._next()})
        self._reply("drained", self._settings.call_s)
        return self._records()

    def stop(self) -> None:
        """End the child and everything it started."""
        below = descendants(self._process.pid)
        for descriptor in (self._commands, self._replies):
            os.close(descriptor)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2)
        self._end(below)

    def kill(self) -> None:
        """As `stop`, at once."""
        below = descendants(self._process.pid)
        for descriptor in (self._commands, self._replies):
            os.close(descriptor)
        self._end(below)

    def _end(self, below: list[int]) -> None:
        kill_tree(self._process)
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._recorder.close()
        self._errors.close()

    def _next(self) -> int:
        self._token += 1
        return self._token

    def _records(self) -> Flush:
        return self._recorder.until(self._token, self._settings.call_s)

    def _send(self, command: Mapping[str, Any]) -> None:
        try:
            os.write(self._commands, (json.dumps(command) + "\n").encode())
        except OSError:
            raise self._ended() from None

    def _reply(self, event: str, timeout_s: float) -> dict[str, Any]:
        reply = self._any_reply(timeout_s)
        if reply.get("event") == event:
            return reply
        reason = str(reply.get("reason", f"the child said {reply.get('event')!r} where {event!r} was due"))
        raise SideProblem(self.role.name, reason, fatal=event != "open" or "CUDA" in reason)

    def _any_reply(self, timeout_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._replies], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise SideProblem(self.role.name, f"no answer within {timeout_s:g} s", fatal=True)
            data = os.read(self._replies, 1 << 16)
            if not data:
                raise self._ended()
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply = json.loads(line)
        except ValueError:
            reply = {}
        return reply if isinstance(reply, dict) else {}

    def _ended(self) -> SideProblem:
        try:
            code: int | None = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = None
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _ERROR_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        telling = [line for line in lines if re.search(r"[Ee]rror|Fatal|panicked", line)]
        said = f": {(telling or lines)[-1]}" if lines else ""
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return SideProblem(self.role.name, f"its process ended with {how}{said}"[:500], fatal=True)


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(_LIB), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **added}

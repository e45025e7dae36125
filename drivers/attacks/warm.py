"""A process that has imported torch and pytest, and forks for each process that the gates start.

`import torch` takes seconds, and a corpus starts some hundred processes. What runs in them is the same;
`--cold` has each start an interpreter of its own instead. Run as `python -m drivers.attacks.warm FOLDER`.
"""

import array
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_HIGH = 512  #: received descriptors are moved out of the way, to here
_MOST = 64  #: descriptors of one process
_START_S = 120.0


@contextmanager
def warm_python(python: Path, folder: Path, libraries: Path) -> Iterator[Path]:
    """A program in `folder` that does what `python` does, started warm while this lasts."""
    here = Path(__file__).with_name("launcher.py")
    launcher = folder / "python"
    launcher.write_text(f"#!{sys.executable} -IS\n{here.read_text()}")
    launcher.chmod(0o755)
    server = subprocess.Popen(
        [python, "-P", "-m", "drivers.attacks.warm", folder],
        env={**os.environ, "PYTHONPATH": str(libraries), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        output = server.stdout
        ready = output is not None and bool(select.select([output], [], [], _START_S)[0])
        if output is None or not ready or output.readline() != b"ready\n":
            raise RuntimeError("the warm interpreter did not start")
        yield launcher
    finally:
        server.communicate()


def serve(folder: Path) -> None:
    """Until standard input ends: fork for each connection."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(folder / "s"))
    listening.listen(64)
    print("ready", flush=True)
    keepers: set[int] = set()
    while True:
        ready, _, _ = select.select([0, listening.fileno()], [], [], 1.0)
        keepers = {pid for pid in keepers if os.waitpid(pid, os.WNOHANG)[0] == 0}
        if 0 in ready:
            break
        if listening.fileno() in ready:
            link, _ = listening.accept()
            pid = os.fork()
            if pid == 0:
                listening.close()
                _keep(link)
            keepers.add(pid)
            link.close()
    for pid in keepers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _keep(link: socket.socket) -> None:
    """Run one process, tell how it ended, or end it when whoever asked for it is gone. Does not return."""
    try:
        request, descriptors = _received(link)
        child = os.fork()
        if child == 0:
            link.close()
            _become(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        handle = os.pidfd_open(child)
        ready, _, _ = select.select([handle, link.fileno()], [], [])
        if handle not in ready:
            _end(child)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
            link.sendall(code.to_bytes(8, "little", signed=True))
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _end(pid: int) -> None:
    from containers.box.gate.processes import descendants

    for one in (pid, *descendants(pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def _received(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    numbers = array.array("i")
    head, ancillary, _, _ = link.recvmsg(8, socket.CMSG_SPACE(_MOST * numbers.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    size, data = int.from_bytes(head, "little"), b""
    while len(data) < size:
        data += link.recv(size - len(data))
    return json.loads(data), list(numbers)


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Be the process that was asked for. Does not return."""
    import fcntl

    code = 1
    try:
        os.setsid()
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _HIGH) for descriptor in descriptors]
        os.closerange(0, _HIGH)
        for descriptor, number in zip(high, request["fds"], strict=True):
            os.dup2(descriptor, number, inheritable=number < 3)
        os.closerange(_HIGH, 2 * _HIGH)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        words = list(request["argv"])
        own = [""] if words[0] != "-P" else []
        words = words[1:] if words[0] == "-P" else words
        packages = [entry for entry in request["env"].get("PYTHONPATH", "").split(os.pathsep) if entry]
        sys.path[:] = [*own, *packages, *_BASE_PATH]
        sys.executable = request["python"]
        sys.argv = words[1:]
        sys.stdin, sys.stdout, sys.stderr = (open(n, m, closefd=False) for n, m in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


_BASE_PATH = [entry for entry in sys.path if entry not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]

#: Imported once for all; nothing of theirs is a candidate's or the gates' own.
_MODULES = (
    *("numpy", "torch", "torch.testing", "torch.profiler", "torch.fx.experimental.symbolic_shapes"),
    *("pytest", "_pytest.runner", "tomllib"),
)


def preload() -> None:
    """Import what every process of the gates imports first."""
    for name in _MODULES:
        importlib.import_module(name)
    for plugin in importlib.import_module("_pytest.config").default_plugins:
        importlib.import_module(f"_pytest.{plugin}")
    torch = importlib.import_module("torch")
    torch.use_deterministic_algorithms(False)  # imports a compiler, as it does in the probes' processes
    # Tensors are small, and threads that wait for each other would only burn what other candidates need.
    torch.set_num_threads(1)
    # pytest collects garbage twice: what is here already need not be looked at, nor copied by a write.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    preload()
    serve(Path(sys.argv[1]))

"""A process that runs rows: `python -m containers.box.gate.rows.child REQUEST.json IN OUT`, two descriptors.

Everything that watches is imported and set up before the tree is on the import path.
"""

import contextlib
import json
import os
import sys
import threading
from pathlib import Path

import pytest
import torch

from containers.box.gate import collector
from containers.box.gate.probes.memory import poison
from containers.box.gate.processes import descendants
from containers.box.gate.rows.brackets import Brackets
from containers.box.gate.rows.dsl import Watch
from containers.box.gate.rows.identities import Identities
from containers.box.gate.rows.marks import Marks
from containers.box.gate.rows.messages import Channel, ProcessFacts, Request
from containers.box.gate.rows.plugin import RowRunner
from farm.codec import decode

OPTIONS = ("-p", "no:cacheprovider", "-q", "--no-header", "--tb=short", "--capture=no", "-o", "addopts=")


def main(request: Request, channel: Channel) -> None:
    """Collect, run what the parent asks for, tell what the process looks like at its end."""
    identities = Identities()
    watched = request.collector and torch.cuda.is_available()
    marks = Marks(
        synchronize=torch.cuda.synchronize,
        flush=collector.flush if watched else None,
        **({"begin": collector.begin, "end": collector.end} if watched else {}),
    )
    brackets = Brackets(marks, identities.check, empty=_poison if request.hollow else _nothing)
    watch = Watch(
        request.source_dsl,
        refuse=request.refuse,
        candidate=request.candidate,
        source=request.source_module,
        inside=lambda: marks.inside,
    )

    def ready() -> None:
        identities.check()
        brackets.install(request.registry, request.backend, request.module)
        if request.guarded:
            watch.arm()

    runner = RowRunner(request, channel, marks, brackets, ready)
    if request.guarded:
        watch.install()
    paths = [str(Path(request.tree) / request.package_path), request.tree]
    sys.path[1:1] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ["PYTHONPATH"], *paths])
    sys.argv = ["pytest"]
    places = ("--rootdir", request.tree, "--confcutdir", request.tree)
    code = pytest.main([*OPTIONS, *places, *request.tests], plugins=[runner])
    if not runner.told:
        runner.tell(problem=f"pytest ended with code {int(code)} before it had collected")
    identities.check()
    facts = {
        "op_names": ", ".join(brackets.names),
        "patched": ", ".join(identities.changed),
        "result_types": ", ".join(sorted(brackets.odd_types)),
        "threads": ", ".join(sorted(_threads())),
        "os_threads": str(len(os.listdir("/proc/self/task"))),
        "left_processes": ", ".join(sorted(_processes())),
        "tree_libraries": ", ".join(_others(Path(request.tree), request.library_place)),
        "libraries": ", ".join(_libraries(Path(request.tree))),
        **(watch.facts() if request.guarded else {}),
    }
    channel.send(ProcessFacts(facts=facts))


def _nothing() -> None:
    pass


def _poison() -> None:
    """Fill free memory, so that an answer of before is not taken for a result."""
    poison(torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu"), 0)


def _processes() -> list[str]:
    """Names of the processes below this one."""
    found = []
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return found


def _others(tree: Path, own: str) -> list[str]:
    """Libraries that are mapped from the tree, or from no file that is still there, but for the target's own."""
    mapped = _libraries(tree)
    return [name for name in mapped if name != own and (not name.startswith("/") or name.endswith("(deleted)"))]


def _threads() -> list[str]:
    """Python's threads beside this one. Autograd's own are dummies to Python."""
    dummy = threading._DummyThread
    return [
        thread.name
        for thread in threading.enumerate()
        if thread is not threading.current_thread() and not isinstance(thread, dummy)
    ]


def _libraries(tree: Path) -> list[str]:
    """Shared libraries that are mapped from elsewhere than the interpreter's and the system's folders."""
    usual = tuple(
        f"{Path(folder).resolve()}/"
        for folder in (sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", *_packages())
    )
    found = set()
    for line in Path("/proc/self/maps").read_text().splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and ".so" in parts[5] and not parts[5].startswith(usual):
            path = Path(parts[5])
            found.add(str(path.relative_to(tree)) if path.is_relative_to(tree) else str(path))
    return sorted(found)


def _packages() -> list[str]:
    return [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]


if __name__ == "__main__":
    main(decode(Request, json.loads(Path(sys.argv[1]).read_text())), Channel(int(sys.argv[2]), int(sys.argv[3])))
    sys.stdout.flush()
    # Threads that a candidate left behind must not keep the process.
    os._exit(0)

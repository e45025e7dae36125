"""The processes that run an op: `python -m containers.box.gate.probes.child REQUEST.json REPLIES`.

REPLIES is a file descriptor for lines of JSON. Orders come on standard input, one line of JSON each.
A process of mode `attempt` imports one side's implementation and calls it for `{"case": FILE, "out": FILE}`.
One of mode `capture` runs rows with pytest and writes calls for `{"names": [..], "own": [..], "rows_s": SECONDS}`,
its first order, then computes exact results for `{"case": FILE, "out": FILE, "results": [[place, dtype], ..]}`.
"""

import contextlib
import importlib
import io
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from containers.box.gate.probes import calls as saved
from containers.box.gate.probes.attempt import attempt, resolve
from containers.box.gate.probes.cases import Case, case_from_plain

#: Exit code of a process whose GPU context is broken: it has answered, and cannot go on.
BROKEN = 3

_PYTEST_OPTIONS = ("-p", "no:cacheprovider", "-p", "no:faulthandler", "-q", "--tb=line", "-W", "ignore")


def main(request: dict[str, Any], replies: io.TextIOWrapper) -> int:
    """Serve orders until standard input ends."""
    orders = os.fdopen(os.dup(0), "r", encoding="utf-8")
    # What the op reads from standard input must not be an order.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    torch.use_deterministic_algorithms(False)
    if request["mode"] == "capture":
        return _capture(request, orders, replies)
    return _attempts(request, orders, replies)


def registry_of(place: str) -> Any:
    """The dict that `module:attribute` names."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def device() -> torch.device:
    """Where ops run here."""
    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def choose_backend(package: str, backend: str) -> None:
    """Make `backend` the repo's current one, for ops that call others; where it has no such function, nothing."""
    for name in (package, f"{package}.backend"):
        with contextlib.suppress(ImportError, AttributeError):
            importlib.import_module(name).set_backend(backend)
            return


def _attempts(request: dict[str, Any], orders: io.TextIOWrapper, replies: io.TextIOWrapper) -> int:
    backend, where = request["backend"], device()
    importlib.import_module(request["package"])
    importlib.import_module(request["module"])
    choose_backend(request["package"], backend)
    registry = registry_of(request["registry"])
    names = sorted(name for name, functions in registry.items() if backend in functions)
    own = sorted(name for name in names if _module_of(registry[name][backend]) == request["module"])
    _say(replies, ready=True, names=names, own=own, torch=torch.__version__, device=str(where))
    for line in orders:
        order = json.loads(line)
        case = case_from_plain(saved.load(Path(order["case"])))
        try:
            function = resolve(registry, case, backend, where)
            given = attempt(function, case, where)
        except Exception as error:
            given = {"raised": f"{type(error).__name__}: {error}"[:500], "results": [], "others": "[]"}
            given |= {"changed": [], "beside": [], "filled": where.type}
        saved.save(Path(order["out"]), given)
        broken = _broken(where)
        _say(replies, done=order["out"], broken=broken)
        if broken:
            return BROKEN
    return 0


def _capture(request: dict[str, Any], orders: io.TextIOWrapper, replies: io.TextIOWrapper) -> int:
    import pytest

    from containers.box.gate.probes.capture import Capture
    from containers.box.gate.probes.shrink import small_enough

    backend, where = request["backend"], device()
    importlib.import_module(request["package"])
    importlib.import_module(request["module"])
    registry = registry_of(request["registry"])
    _say(replies, ready=True)
    what = json.loads(orders.readline())
    same = {n for n, f in registry.items() if _module_of(f.get(backend)) == request["module"]}
    names = (frozenset(what["names"]) & same) | frozenset(what["own"])
    originals = {name: registry[name][backend] for name in names if backend in registry.get(name, {})}
    plugin = Capture(registry=registry, names=names, backend=backend, comparison=request["comparison"])
    plugin.most_rows = request["most_rows"]
    plugin.until_s = time.monotonic() + what["rows_s"]
    code = int(pytest.main([*_PYTEST_OPTIONS, *request["tests"]], plugins=[plugin]))
    for name, function in originals.items():
        registry[name][backend] = function
    choose_backend(request["package"], backend)
    files = []
    for i, call in enumerate(plugin.calls):
        small = small_enough(
            call,
            request["most_elements"],
            lambda case: attempt(resolve(registry, case, backend, where), case, where),
        )
        file = Path(request["out"]) / f"call-{i}"
        saved.save(file, saved.to_plain(small))
        files.append(str(file))
    facts = {"pytest": code, "functions": sorted(originals), "unportable": plugin.unportable}
    _say(replies, calls=files, **facts)
    for line in orders:
        order = json.loads(line)
        case = case_from_plain(saved.load(Path(order["case"])))
        exact = _exact(plugin.reference(case.call), case, where, order["results"])
        saved.save(Path(order["out"]), exact)
        broken = _broken(where)
        _say(replies, done=order["out"], broken=broken)
        if broken:
            return BROKEN
    return 0


def _exact(reference: Any, case: Case, where: torch.device, results: list[list[str]]) -> dict[str, torch.Tensor]:
    from containers.box.gate.probes.oracle import exact

    if reference is None:
        return {}
    try:
        return exact(reference, case, where, [(place, getattr(torch, dtype)) for place, dtype in results])
    except Exception:
        # No oracle is an expected outcome, and the record says so; the log says why.
        traceback.print_exc()
        return {}


def _module_of(function: Any) -> str:
    return str(getattr(function, "__module__", ""))


def _broken(where: torch.device) -> bool:
    try:
        if where.type == "cuda":
            torch.cuda.synchronize(where)
    except Exception:
        return True
    return False


def _say(replies: io.TextIOWrapper, **facts: Any) -> None:
    replies.write(json.dumps(facts) + "\n")
    replies.flush()


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text()), os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")))

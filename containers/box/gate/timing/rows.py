"""Which rows a child can time, and the way from a row to its closure: a pytest plugin run on command."""

import functools
import importlib
import random
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any

import pytest
import torch
from _pytest.runner import runtestprotocol

from containers.box.gate.timing.channel import Channel
from containers.box.gate.timing.serve import ClosureError, Server
from containers.box.gate.timing.tensors import leaves, map_tensors
from containers.box.trace.rows import is_case, numbered, row_key

_SEED = 1234


class Rows:
    """Collects, says what there is, then runs one row at a time up to the place where it would measure."""

    def __init__(self, request: dict[str, Any], channel: Channel, server: Server) -> None:
        self._request, self._channel, self._server = request, channel, server
        self._mode: str | None = None  #: `perf`, `case` or `survey` while a row runs
        self._served = False  #: the row came to its closure
        self._problem: str | None = None
        self._seen: dict[str, Any] | None = None  #: of a survey
        self._bytes: list[int] | None = None  #: of the op's calls, while traffic is counted
        self._ran: set[str] = set()
        self._opened: set[str] = set()
        self._again = False  #: the row that runs was timed before

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running all rows in order."""
        perf, cases = self._named(session.items, perf=True), self._named(session.items, perf=False)
        self._replace_benchmark(session.items)
        names = self._wrap_registry()
        self._channel.send("rows", perf=list(perf), cases=list(cases), names=names)
        while (command := self._channel.receive())["do"] != "end":
            if command["do"] == "survey":
                self._wrap(command["names"])
                for key, item in cases.items():
                    self._survey(key, item)
                self._channel.send("surveyed")
            elif command["do"] == "open":
                if command["kind"] == "case":
                    self._wrap(command["names"])
                self._again = command["key"] in self._opened
                self._opened.add(command["key"])
                self._server.displace(int(command["placement"]))
                self._open((perf if command["kind"] == "perf" else cases)[command["key"]], command["kind"])
        return True

    def _named(self, items: list[pytest.Item], *, perf: bool) -> dict[str, pytest.Item]:
        """Rows of this side's backend by a name that both sides share."""
        backend, found, keys = _spelled(self._request["backend"]), [], []
        for item in items:
            function, params = getattr(item, "originalname", item.name), _params(item)
            chosen = {name for name, value in params.items() if _chooses(name) and _spelled(value) == backend}
            measures = any(fnmatch(function, pattern) for pattern in self._request["perf"])
            if not chosen or measures is not perf or not (perf or is_case(function)):
                continue
            rest = {name: value for name, value in params.items() if name not in chosen}
            found.append(item)
            keys.append(row_key(function, rest, getattr(_callspec(item), "indices", {})))
        return dict(zip(numbered(keys), found, strict=True))

    def _replace_benchmark(self, items: list[pytest.Item]) -> None:
        if self._request["benchmark"] is None:
            return
        module_name, _, name = self._request["benchmark"].partition(":")
        module = sys.modules.get(module_name) or importlib.import_module(module_name)
        original = getattr(module, name)
        for place in {id(m): m for m in (module, *(getattr(item, "module", module) for item in items))}.values():
            for attribute, value in list(vars(place).items()):
                if value is original:
                    setattr(place, attribute, self._benchmark)

    def _benchmark(self, *arguments: Any, **named: Any) -> None:
        function = next((value for value in (*arguments, *named.values()) if callable(value)), None)
        if self._mode == "perf" and function is not None:
            self._serve(function)
        pytest.skip("timed by the gate")

    def _serve(self, function: Callable[[], Any]) -> None:
        self._served = True
        try:
            self._server.serve(function, self._traffic, known=self._again)
        except Exception as error:
            self._problem = _said(error)
        pytest.skip("timed by the gate")

    def _traffic(self, function: Callable[[], Any]) -> int | None:
        self._bytes = []
        function()
        counted, self._bytes = self._bytes, None
        return sum(counted) or None

    def _wrap_registry(self) -> list[str]:
        """Wrap this side's functions; their names."""
        registry, module = self._registry(), self._request["module"]
        names = []
        for name, functions in registry.items():
            own = getattr(functions.get(self._request["backend"]), "__module__", None) or ""
            if own == module or own.startswith(f"{module}."):
                names.append(name)
        self._wrap(names)
        return names

    def _registry(self) -> dict[str, dict[str, Any]]:
        module_name, _, attribute = self._request["registry"].partition(":")
        found: dict[str, dict[str, Any]] = getattr(importlib.import_module(module_name), attribute)
        return found

    def _wrap(self, names: list[str]) -> None:
        registry, backend = self._registry(), self._request["backend"]
        for name in names:
            original = registry.get(name, {}).get(backend)
            if original is not None and not hasattr(original, "tilefarm_original"):
                registry[name][backend] = self._wrapped(original)

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._mode in ("case", "survey") and not self._served:
                self._served = True
                args, kwargs = map_tensors(args, _detached), map_tensors(kwargs, _detached)
                if self._mode == "case":
                    self._serve(functools.partial(original, *args, **kwargs))
                self._seen = {"bytes": _bytes((args, kwargs)), "signature": _signature((args, kwargs))}
                pytest.skip("surveyed by the gate")
            result = original(*args, **kwargs)
            if self._bytes is not None:
                self._bytes.append(_bytes((args, kwargs, result)))
            return result

        call.tilefarm_original = original  # type: ignore[attr-defined]
        return call

    def _survey(self, key: str, item: pytest.Item) -> None:
        self._seen = None
        self._run(item, "survey")
        if self._seen is not None:
            self._channel.send("row", key=key, **self._seen)

    def _open(self, item: pytest.Item, kind: str) -> None:
        self._problem = None
        reason = self._run(item, kind)
        if self._problem is None and not self._served:
            self._problem = reason or "the row ended before it came to what it would measure"
        if self._problem is None:
            self._channel.send("closed")
        else:
            self._channel.send("problem", reason=self._problem)

    def _run(self, item: pytest.Item, mode: str) -> str | None:
        """Run a row; why it ended early."""
        if item.nodeid in self._ran:
            item._initrequest()  # type: ignore[attr-defined]
        self._ran.add(item.nodeid)
        self._mode, self._served = mode, False
        # Both sides make the same inputs, also where a row sets no seed.
        random.seed(_SEED)
        torch.manual_seed(_SEED)
        try:
            reports = runtestprotocol(item, log=False, nextitem=None)
        finally:
            self._mode = None
        return next((_reason(report) for report in reports if not report.passed), None)


def _callspec(item: pytest.Item) -> Any:
    return getattr(item, "callspec", None)


def _params(item: pytest.Item) -> dict[str, Any]:
    return dict(getattr(_callspec(item), "params", {}))


def _spelled(backend: Any) -> str:
    """Test files spell a backend with dashes or underscores."""
    return str(backend).replace("_", "-")


def _chooses(name: str) -> bool:
    return any(word in name.lower() for word in ("backend", "framework"))


def _detached(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.requires_grad else tensor


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))


def _bytes(value: Any) -> int:
    """Bytes of the distinct tensors, an extent of stride 0 once."""
    sizes = {}
    for tensor in _tensors(value):
        count = 1
        for extent, stride in zip(tensor.shape, tensor.stride(), strict=True):
            count *= extent if stride else min(extent, 1)
        place = (tensor.data_ptr(), tuple(tensor.shape))
        sizes[place] = count * tensor.dtype.itemsize
    return sum(sizes.values())


def _signature(value: Any) -> str:
    parts = [f"{tensor.dtype}{tuple(tensor.shape)}{tensor.stride()}" for tensor in _tensors(value)]
    rest = [repr(leaf) for leaf in leaves(value) if isinstance(leaf, (bool, int, float, str))]
    return " ".join(parts + rest)


def _said(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    said = text[0] if text else "no message"
    return (said if isinstance(error, ClosureError) else f"{type(error).__name__}: {said}")[:500]


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:500]
    lines = [line for line in str(report.longrepr).strip().splitlines() if line.startswith("E ")]
    return (lines[0][1:].strip() if lines else str(report.longrepr).strip()[-300:])[:500]

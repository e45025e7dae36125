"""The pytest plugin: runs a choice of the source's rows and keeps what they pass to the op."""

import contextlib
import functools
import importlib
import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from containers.box.gate.probes.calls import Call, Slot, Slots, UnportableArgument, contiguous_strides, encode
from containers.box.gate.probes.oracle import Reference, reference_from
from containers.box.gate.probes.rows_choice import Row, choose
from containers.box.trace.rows import backend_of, is_case, numbered, row_key

Registry = dict[str, dict[str, Callable[..., Any]]]

#: Calls kept of one row: its first ones. Different rows differ more than calls of one.
CALLS_PER_ROW = 2


class Capture:
    """Selects rows, stands before the op's functions, and keeps calls with the references of their rows."""

    def __init__(self, *, registry: Registry, names: frozenset[str], backend: str, comparison: str | None) -> None:
        self._registry = registry
        self._names = names
        self._backend = backend
        self._comparison = comparison
        self._key = ""
        self._inside = 0
        self._comparing: dict[str, Any] | None = None
        self._row: list[Call] = []
        self._back = False
        self.most_rows = 8
        self.until_s = float("inf")  #: on the monotonic clock: after it no row is begun
        self.calls: list[Call] = []
        self.references: dict[str, Reference] = {}  #: by the call's id
        self.by_name: dict[str, Reference] = {}  #: by the registry's name, for calls without one of their own
        self.unportable: list[str] = []  #: calls that were left out, with the reason
        self._keys: dict[str, str] = {}
        self._session: pytest.Session | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep a choice of the backend's rows: the smallest of each function with each set of dtypes and flags."""
        mine = [
            item
            for item in items
            if backend_of(_params(item)) == self._backend and is_case(getattr(item, "originalname", item.name))
        ]
        keys = numbered([_key(item) for item in mine])
        self._keys = {item.nodeid: key for item, key in zip(mine, keys, strict=True)}
        params = [_params(item) for item in mine]
        functions = [item.nodeid.split("[", 1)[0] for item in mine]
        rows = [Row(index=i, function=functions[i], params=params[i]) for i in range(len(mine))]
        items[:] = [mine[row.index] for row in choose(rows, self.most_rows)]

    def pytest_runtest_logfinish(self) -> None:
        """Begin no other row when time is up; what was captured until then is enough."""
        if time.monotonic() > self.until_s and self._session is not None:
            self._session.shouldstop = "time is up"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep what can be told to stop."""
        self._session = session

    def pytest_collection_finish(self) -> None:
        """The repo is imported now: stand before its functions."""
        for name in self._names:
            original = self._registry.get(name, {}).get(self._backend)
            if original is not None:
                self._registry[name][self._backend] = self._recorded(name, original, None)
        if self._comparison is not None:
            self._watch_comparison(self._comparison)
        for place in ("backward", "grad"):
            original = getattr(torch.autograd, place)
            setattr(torch.autograd, place, self._noting_the_way_back(original))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Keep the calls of a row that passes; a row that fails has nothing to say about what is right."""
        self._key, self._row, self._back = self._keys[item.nodeid], [], False
        try:
            return (yield)
        except BaseException:
            self._row = []
            raise
        finally:
            self.calls += [replace(call, backward=self._back) for call in self._row]
            self._row, self._key = [], ""

    def _recorded(self, name: str, original: Callable[..., Any], factory: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            outermost = self._key and not self._inside
            kept = self._keep(name, original, factory, args, kwargs) if outermost else None
            self._inside += 1
            try:
                returned = original(*args, **kwargs)
            finally:
                self._inside -= 1
            made = outermost and factory is None and inspect.isroutine(returned)
            if made and kept is not None and not kept.slots:
                self._row.remove(kept)
                return self._recorded(name, returned, {"@": "tuple", "items": [kept.args, kept.kwargs]})
            return returned

        return call

    def _keep(
        self, name: str, original: Callable[..., Any], factory: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Call | None:
        if len(self._row) >= CALLS_PER_ROW:
            return None
        slots = Slots()
        try:
            names = _names(original, len(args))
            items = [encode(arg, slots, names[i]) for i, arg in enumerate(args)]
            encoded = {"@": "tuple", "items": items}
            named = {"@": "dict", "items": [[key, encode(value, slots, key)] for key, value in kwargs.items()]}
        except UnportableArgument as error:
            self.unportable.append(f"{self._key}: {name} got {error}")
            return None
        # A row that computes without gradients has none to give, whatever its tensors want.
        graded = torch.is_grad_enabled()
        tensors = tuple(_slot(label, t, graded) for label, t in zip(slots.names, slots.tensors, strict=True))
        call = Call(
            key=self._key,
            position=len(self._row),
            name=name,
            factory=factory,
            args=encoded,
            kwargs=named,
            slots=tensors,
            backward=False,
        )
        self._row.append(call)
        if self._comparing is not None:
            reference = reference_from(slots=slots, **self._comparing)
            if reference is not None:
                self.references[call.id] = reference
                self.by_name.setdefault(_form(call), reference)
        return call

    def reference(self, call: Call) -> Reference | None:
        """The reference of the call's row; else of another call of like form; else the registry's own in torch."""
        found = self.references.get(call.id) or self.by_name.get(_form(call))
        plain = self._registry.get(call.name, {}).get("pytorch")
        if found is None and plain is not None and call.factory is None:
            return Reference(function=plain, args=call.args, kwargs=call.kwargs)
        return found

    def _watch_comparison(self, place: str) -> None:
        module, _, path = place.partition(":")
        owner_name, _, method = path.rpartition(".")
        try:
            owner = functools.reduce(getattr, owner_name.split("."), importlib.import_module(module))
            original = getattr(owner, method)
        except (ImportError, AttributeError):
            return
        signature = inspect.signature(original)

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(TypeError, KeyError):
                given = signature.bind(*args, **kwargs).arguments
                common = {name: getattr(value, "tensor", value) for name, value in given["kwargs"].items()}
                self._comparing = {
                    "function": given["ref_fn"],
                    "kwargs": {**common, **(given.get("extra_ref_kwargs") or {})},
                    "result": given.get("test_index"),
                    "own": given.get("ref_index"),
                }
            try:
                return original(*args, **kwargs)
            finally:
                self._comparing = None

        setattr(owner, method, watched)

    def _noting_the_way_back(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._back = True
            return original(*args, **kwargs)

        return noted


def _form(call: Call) -> str:
    """Calls of equal form have their tensors in the same arguments."""
    return f"{call.name}({', '.join(f'{slot.name}:{slot.data.dim()}' for slot in call.slots)})"


def _slot(name: str, tensor: torch.Tensor, graded: bool) -> Slot:
    data = tensor.detach().cpu().contiguous().clone()
    strides = tuple(tensor.stride())
    overlapping = any(stride == 0 and n > 1 for stride, n in zip(strides, tensor.shape, strict=True))
    return Slot(
        name=name,
        data=data,
        strides=contiguous_strides(tensor.shape) if overlapping else strides,
        wants_grad=graded and tensor.requires_grad and tensor.is_floating_point(),
    )


def _names(function: Callable[..., Any], count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else f"argument {i}" for i in range(count)]


def _params(item: pytest.Item) -> dict[str, Any]:
    spec = getattr(item, "callspec", None)
    return dict(spec.params) if spec is not None else {}


def _key(item: pytest.Item) -> str:
    spec = getattr(item, "callspec", None)
    function = item.nodeid.split("[", 1)[0]
    return row_key(function, _params(item), dict(spec.indices) if spec is not None else {})

"""The op's registered functions between brackets: what they gave, and what their backward passes ran."""

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

import torch

from containers.box.gate.rows.marks import Marks
from containers.box.gate.rows.nulls import Null, tensors
from farm.measured.records import ResultFact


class Brackets:
    """Stands before each function of the op in the repo's registry."""

    def __init__(self, marks: Marks, check: Callable[[], None], *, empty: Callable[[], None]) -> None:
        """`empty` is called before each call of the op; `check` after it."""
        self._marks = marks
        self._check = check
        self._empty = empty
        self._null: Null | None = None
        self._passes: set[int] = set()
        self._results: list[ResultFact] = []
        self.odd_types: set[str] = set()  #: classes of results that are not plain tensors
        self.names: tuple[str, ...] = ()  #: the op's names in the registry

    def install(self, registry: str, backend: str, module: str) -> None:
        """Wrap the functions of `backend` that are defined in `module`. The repo is imported by now."""
        home, _, attribute = registry.partition(":")
        table = getattr(importlib.import_module(home), attribute)
        mine = [
            name
            for name, known in table.items()
            if backend in known and _home(known[backend]).split(".")[: module.count(".") + 1] == module.split(".")
        ]
        for name in mine:
            table[name][backend] = self._wrapped(table[name][backend])
        self.names = tuple(mine)

    def begin_row(self, null: Null | None) -> None:
        """Forget what was before; `null` stands for the op in this row."""
        self._null = null
        self._passes = set()
        self._results = []

    @property
    def results(self) -> tuple[ResultFact, ...]:
        """Of the row's calls, in order."""
        return tuple(self._results)

    @property
    def backwards(self) -> int:
        """Runs of autograd's engine that came through the op."""
        return len(self._passes)

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def bracketed(*args: Any, **kwargs: Any) -> Any:
            if self._marks.inside:
                return function(*args, **kwargs)
            null = self._null
            before = null.before((args, kwargs)) if null is not None else []
            self._empty()
            try:
                with self._marks.op():
                    result = function(*args, **kwargs)
            finally:
                self._check()
            if null is not None:
                null.after(result, before)
            self._note(result, (args, kwargs))
            return self._given(result)

        return bracketed

    def _given(self, result: Any) -> Any:
        """The result as the test gets it: an op that gives functions gives bracketed ones."""
        if isinstance(result, (tuple, list)):
            items = [self._given(item) for item in result]
            if all(new is old for new, old in zip(items, result, strict=True)):
                return result
            return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        if callable(result) and not isinstance(result, (type, torch.Tensor, torch.nn.Module)):
            return self._wrapped(result)
        return result

    def _note(self, result: Any, arguments: Any) -> None:
        given = list(tensors(result))
        for tensor in given:
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                self.odd_types.add(type(tensor).__name__)
            fact = ResultFact(
                shape=tuple(tensor.shape),
                stride=tuple(tensor.stride()),
                dtype=str(tensor.dtype).removeprefix("torch."),
                requires_grad=tensor.requires_grad,
            )
            self._results.append(fact)
        outside = _reachable(tensor.grad_fn for tensor in tensors(arguments))
        own = _reachable((tensor.grad_fn for tensor in given), outside)
        roots = {tensor.grad_fn for tensor in given}
        for node in own:
            if type(node).__name__ != "AccumulateGrad":
                self._hook(node, node in roots, own)

    def _hook(self, node: Any, is_root: bool, own: set[Any]) -> None:
        null = self._null
        leaving = [
            following is not None and (following not in own or type(following).__name__ == "AccumulateGrad")
            for following, _ in node.next_functions
        ]

        def before(_: Any) -> None:
            self._marks.enter()
            if is_root:
                self._passes.add(torch._C._current_graph_task_id())

        def after(inputs: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
            self._marks.leave()
            self._check()
            if null is None or len(inputs) != len(leaving):
                return None
            pairs = zip(inputs, leaving, strict=True)
            return tuple(null.gradient(gradient) if edge else gradient for gradient, edge in pairs)

        node.register_prehook(before)
        node.register_hook(after)


def _home(function: Any) -> str:
    return str(getattr(function, "__module__", None) or "")


def _reachable(starts: Iterable[Any], without: frozenset[Any] | set[Any] = frozenset()) -> set[Any]:
    """Nodes of autograd's graph behind `starts`, short of those in `without`."""
    found: set[Any] = set()
    waiting = [node for node in starts if node is not None]
    while waiting:
        node = waiting.pop()
        if node in found or node in without:
            continue
        found.add(node)
        waiting += [following for following, _ in node.next_functions if following is not None]
    return found

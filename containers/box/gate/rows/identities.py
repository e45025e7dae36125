"""Whether functions by which results are judged or timed are still the ones that they were."""

import importlib
import inspect
import os
from typing import Any

import torch

NAMES = (
    "builtins:abs",
    "builtins:all",
    "builtins:any",
    "builtins:float",
    "builtins:isinstance",
    "builtins:len",
    "builtins:max",
    "builtins:min",
    "math:isclose",
    "os:_exit",
    "pytest:approx",
    "pytest:fail",
    "pytest:raises",
    "pytest:skip",
    "sys:exit",
    "time:monotonic",
    "time:perf_counter",
    "time:perf_counter_ns",
    "time:time",
    "torch:Tensor.__eq__",
    "torch:Tensor.abs",
    "torch:Tensor.all",
    "torch:Tensor.allclose",
    "torch:Tensor.any",
    "torch:Tensor.backward",
    "torch:Tensor.cpu",
    "torch:Tensor.equal",
    "torch:Tensor.float",
    "torch:Tensor.isnan",
    "torch:Tensor.item",
    "torch:Tensor.max",
    "torch:Tensor.sub",
    "torch:Tensor.to",
    "torch:abs",
    "torch:allclose",
    "torch:autograd.backward",
    "torch:autograd.grad",
    "torch:cuda.Event",
    "torch:cuda.Event.elapsed_time",
    "torch:cuda.Event.record",
    "torch:cuda.Event.synchronize",
    "torch:cuda.Stream.synchronize",
    "torch:cuda.current_stream",
    "torch:cuda.empty_cache",
    "torch:cuda.manual_seed",
    "torch:cuda.synchronize",
    "torch:equal",
    "torch:eq",
    "torch:isclose",
    "torch:isnan",
    "torch:manual_seed",
    "torch:max",
    "torch:ones_like",
    "torch:profiler.profile",
    "torch:rand",
    "torch:randn",
    "torch:randn_like",
    "torch:sub",
    "torch.testing:assert_close",
    "os:write",
    "json:dumps",
    "containers.box.gate.rows.brackets:Brackets._note",
    "containers.box.gate.rows.brackets:Brackets.backwards",
    "containers.box.gate.rows.brackets:Brackets.results",
    "containers.box.gate.rows.marks:Marks.end_row",
    "containers.box.gate.rows.marks:Marks.enter",
    "containers.box.gate.rows.marks:Marks.leave",
    "containers.box.gate.rows.messages:Channel.send",
    "containers.box.gate.rows.messages:RowEnd",
    "containers.box.gate.rows.messages:line",
    "_pytest.reports:TestReport.from_item_and_call",
    "_pytest.runner:call_and_report",
    "_pytest.runner:runtestprotocol",
)


_TORCH = os.path.join(os.path.dirname(torch.__file__), "")


class Identities:
    """The functions as they are now; make it before any code that is judged is imported."""

    def __init__(self) -> None:
        self._were = {name: _seen(name) for name in NAMES}
        self._changed: set[str] = set()

    def check(self) -> None:
        """Note those that are others now. Cheap enough for every call of the op."""
        for name, (value, code) in self._were.items():
            now = _seen(name)
            if (now[0] is not value or now[1] is not code) and not _same_behind_torch(now, value, code):
                self._changed.add(name.replace(":", "."))

    @property
    def changed(self) -> tuple[str, ...]:
        """Names that were seen changed at some check, sorted."""
        return tuple(sorted(self._changed))


def _same_behind_torch(now: tuple[Any, Any], value: Any, code: Any) -> bool:
    """Whether torch itself put a wrapper of its own around the same function: torch._dynamo does when imported."""
    wrapper = getattr(now[1], "co_filename", "")
    inside = inspect.unwrap(now[0]) if callable(now[0]) else None
    return wrapper.startswith(_TORCH) and inside is value and getattr(inside, "__code__", None) is code


def _seen(name: str) -> tuple[Any, Any]:
    module, _, path = name.partition(":")
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        # A method is made anew at each look; what its class holds is not.
        value = (
            vars(value).get(part)
            if isinstance(value, type) and part in vars(value)
            else getattr(value, part, None)
        )
    return value, getattr(value, "__code__", None)

"""Fake tensors that claim to be on a GPU: modes that a row runs under."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.overrides import TorchFunctionMode

from containers.box.trace.addresses import AddressBook
from containers.box.trace.answers import Answer, ComparisonReached, HostReadsData, MetadataMismatch
from containers.box.trace.steps import StepLog
from farm.recipes.cutile_rs.storages import Maker

CLAIMED = torch.device("cuda", 0)
_CPU = torch.device("cpu")


def redirected(device: Any) -> Any:
    """The device that work asked for on `device` is done on."""
    if isinstance(device, str) and device.startswith("cuda"):
        return _CPU
    if isinstance(device, torch.device) and device.type == "cuda":
        return _CPU
    return device


class StorageMode(FakeTensorMode):
    """Fake tensors whose storages get their addresses in the order in which they are made."""

    def __init__(self, book: AddressBook, steps: StepLog) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self._book = book
        self._steps = steps
        self._depth = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._depth += 1
        try:
            with torch._C.DisableTorchFunction():  # what torch itself asks a tensor gets the truth
                out = super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            self._depth -= 1
        if self._depth == 0:
            for value in out if isinstance(out, (tuple, list)) else (out,):
                if isinstance(value, FakeTensor):
                    self._book.see(value.untyped_storage())
            with torch._C.DisableTorchFunction():
                self._steps.operation(func, args, kwargs, out)
        return out


class ClaimMode(TorchFunctionMode):
    """Sends work for the GPU to fake CPU tensors while these go on claiming to be on the GPU.

    `judge` says who asks; `answered` is told when a test was given an answer instead of a value.
    """

    def __init__(
        self, book: AddressBook, steps: StepLog, judge: Callable[[], Maker], answered: Callable[[], None]
    ) -> None:
        super().__init__()
        self._steps = steps
        self._book = book
        self._judge = judge
        self._answered = answered
        self._special = self._table()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        special = self._special.get(func)
        if special is not None:
            return special(func, *args, **(kwargs or {}))
        args = tuple(redirected(arg) for arg in args)
        kwargs = {key: redirected(value) for key, value in (kwargs or {}).items() if key != "pin_memory"}
        if isinstance(kwargs.get("generator"), torch.Generator):
            kwargs["generator"] = None
        try:
            return func(*args, **kwargs)
        except DynamicOutputShapeException as error:
            return self._nothing(func, args, error)
        except DataDependentOutputException as error:
            return self._answer(error)

    def _table(self) -> dict[Any, Callable[..., Any]]:
        tensor = torch.Tensor
        return {
            tensor.device.__get__: lambda _func, _tensor: CLAIMED,
            tensor.is_cuda.__get__: lambda _func, _tensor: True,
            tensor.is_cpu.__get__: lambda _func, _tensor: False,
            tensor.get_device: lambda _func, _tensor: 0,
            tensor.data_ptr: lambda _func, array: self._book.address(array),
            tensor.cuda: lambda _func, array, *_a, **_k: array,
            tensor.cpu: lambda _func, array, *_a, **_k: array,
            tensor.pin_memory: lambda _func, array, *_a, **_k: array,
            tensor.record_stream: lambda _func, _array, _stream: None,
            tensor.item: self._read,
            tensor.__bool__: self._bool,
            tensor.__float__: lambda func, array: float(self._read(func, array)),
            tensor.__int__: lambda func, array: int(self._read(func, array)),
            tensor.__index__: lambda func, array: int(self._read(func, array)),
            tensor.__format__: self._format,
            tensor.tolist: self._numbers,
            tensor.numpy: self._numbers,
            tensor.__array__: self._numbers,
            torch.equal: self._close,
            torch.allclose: self._close,
            tensor.equal: self._close,
            tensor.allclose: self._close,
            torch.isnan: self._hopefully_false,
            torch.isinf: self._hopefully_false,
            tensor.isnan: self._hopefully_false,
            tensor.isinf: self._hopefully_false,
            tensor.any: self._carry,
            torch.any: self._carry,
            tensor.__or__: self._carry,
            tensor.sum: self._carry,
        }

    def _read(self, func: Any, array: Any) -> Any:
        try:
            return func(array)
        except DataDependentOutputException as error:
            return self._answer(error)

    def _format(self, _func: Any, array: Any, spec: str) -> str:
        return format(self._read(torch.Tensor.item, array), spec) if array.dim() == 0 else object.__repr__(array)

    def _bool(self, func: Any, array: Any) -> bool:
        expected = getattr(array, "_expected", None)
        if expected is not None:
            self._answered()
            return bool(expected)
        if self._judge() is Maker.OP:
            try:
                return bool(func(array))
            except DataDependentOutputException:
                return self._steps.branch(array)
        return bool(self._read(func, array))

    def _answer(self, error: Exception) -> Answer:
        if self._judge() is not Maker.TEST:
            raise HostReadsData(f"host code of the op reads tensor values: {error}") from None
        self._answered()
        return Answer()

    def _numbers(self, func: Any, array: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return func(array, *args, **kwargs)
        except (DataDependentOutputException, RuntimeError, TypeError) as error:
            if self._judge() is not Maker.TEST:
                raise HostReadsData(f"host code of the op reads tensor values: {error}") from None
            self._answered()
            raise ComparisonReached("the test looks at a tensor's numbers") from None

    def _nothing(self, func: Any, args: Any, error: Exception) -> Any:
        """A selection by value, of nothing."""
        if self._judge() is not Maker.TEST:
            raise HostReadsData(f"host code of the op reads tensor values: {error}") from None
        self._answered()
        if func in (torch.Tensor.nonzero, torch.nonzero, torch.argwhere):
            return torch.empty((0, args[0].dim()), dtype=torch.int64)
        if func in (torch.Tensor.__getitem__, torch.masked_select, torch.Tensor.masked_select):
            return torch.empty((0,), dtype=args[0].dtype)
        raise ComparisonReached(f"the test needs a shape that depends on values: {error}") from None

    def _close(self, _func: Any, first: Any, second: Any, *_args: Any, **_kwargs: Any) -> bool:
        same_form(first, second, dtype=False)
        self._steps.look(first)
        self._steps.look(second)
        self._answered()
        return True

    def assert_close(self, actual: Any, expected: Any, *, check_dtype: bool = True, **_options: Any) -> None:
        """Stands in for torch.testing.assert_close: shapes and dtypes are compared, values hoped for."""
        if isinstance(actual, (tuple, list)) and isinstance(expected, (tuple, list)):
            if len(actual) != len(expected):
                raise MetadataMismatch(f"lengths differ: {len(actual)} and {len(expected)}")
            for one, other in zip(actual, expected, strict=True):
                self.assert_close(one, other, check_dtype=check_dtype)
            return
        for value in (actual, expected):
            if isinstance(value, torch.Tensor):
                self._steps.look(value)
        same_form(actual, expected, dtype=check_dtype)
        self._answered()

    def _hopefully_false(self, func: Any, array: Any) -> Any:
        out = func(array)
        out._expected = False
        return out

    def _carry(self, func: Any, array: Any, *args: Any, **kwargs: Any) -> Any:
        out = self.__torch_function__(functools.partial(func), (), (array, *args), kwargs)
        expected = getattr(array, "_expected", None)
        if expected is not None and isinstance(out, torch.Tensor):
            out._expected = expected
        return out


@contextlib.contextmanager
def in_engine(claim: ClaimMode) -> Iterator[None]:
    """While it lasts, autograd runs backward functions under `claim` too.

    Torch takes a mode off the stack while the mode handles a call, and `backward` is such a call.
    """
    original = torch.autograd._engine_run_backward

    def run(*args: Any, **kwargs: Any) -> Any:
        with claim:
            return original(*args, **kwargs)

    torch.autograd._engine_run_backward = run
    try:
        yield
    finally:
        torch.autograd._engine_run_backward = original


def same_form(first: Any, second: Any, *, dtype: bool) -> None:
    """Raises MetadataMismatch when two tensors differ in shape, or in dtype where that counts."""
    if not (isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)):
        return
    if first.shape != second.shape:
        raise MetadataMismatch(f"shapes differ: {tuple(first.shape)} and {tuple(second.shape)}")
    if dtype and first.dtype != second.dtype:
        raise MetadataMismatch(f"dtypes differ: {first.dtype} and {second.dtype}")

"""Answers of `torch.cuda` on a machine that has no GPU."""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

from containers.box.trace.fake_tensors import ClaimMode
from containers.box.trace.gpus import Gpu


class FakeStream:
    """A stream on which everything is done at once."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self.device = torch.device("cuda", 0)

    def synchronize(self) -> None:
        """Nothing is pending."""

    def wait_stream(self, _other: Any) -> None:
        """Nothing is pending."""

    wait_event = wait_stream

    def record_event(self, event: Any = None) -> Any:
        """An event of the past."""
        return event or FakeEvent()

    def query(self) -> bool:
        """Done."""
        return True

    def __enter__(self) -> "FakeStream":
        return self

    def __exit__(self, *_error: object) -> None:
        return None


class FakeEvent:
    """An event that happened when it was recorded; between two of them passes 1 ms."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        return

    def record(self, _stream: Any = None) -> None:
        """Happens now."""

    wait = synchronize = record

    def query(self) -> bool:
        """Happened."""
        return True

    def elapsed_time(self, _other: Any) -> float:
        """Milliseconds."""
        return 1.0


class FakeGenerator(torch.Generator):
    """A generator that takes any device."""

    def __new__(cls, device: Any = None) -> "FakeGenerator":
        return super().__new__(cls)

    def __init__(self, device: Any = None) -> None:
        super().__init__()


class _Anything(contextlib.AbstractContextManager[Any]):
    """A context manager that takes any arguments and does nothing."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        return

    def __exit__(self, *_error: object) -> None:
        return None


_CONSTANT = (
    (
        None,
        "synchronize empty_cache manual_seed manual_seed_all init _lazy_init set_device set_stream",
    ),
    (None, "ipc_collect reset_peak_memory_stats reset_max_memory_allocated set_rng_state"),
    (0, "memory_allocated max_memory_allocated memory_reserved current_device"),
    (True, "is_available is_initialized is_bf16_supported"),
)


def _replacements(gpu: Gpu) -> dict[str, Any]:
    properties = SimpleNamespace(
        name=gpu.name,
        major=gpu.major,
        minor=gpu.minor,
        multi_processor_count=gpu.sms,
        total_memory=gpu.memory_bytes,
        shared_memory_per_block_optin=gpu.shared_bytes,
        shared_memory_per_multiprocessor=gpu.shared_bytes,
        L2_cache_size=gpu.l2_bytes,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
    )

    def constant(value: Any) -> Any:  # a function of its own for each name: torch tells them apart
        return lambda *_args, **_kwargs: value

    stream = FakeStream()
    return {
        **{name: constant(value) for value, names in _CONSTANT for name in names.split()},
        **{name: constant(stream) for name in ("current_stream", "default_stream")},
        **dict.fromkeys(("stream", "device", "device_of"), _Anything),
        "device_count": constant(1),
        "get_device_capability": constant((gpu.major, gpu.minor)),
        "get_device_properties": constant(properties),
        "get_device_name": constant(gpu.name),
        "mem_get_info": constant((gpu.memory_bytes, gpu.memory_bytes)),
        "get_arch_list": constant([f"sm_{gpu.major}{gpu.minor}"]),
        "get_rng_state": constant(torch.zeros(16, dtype=torch.uint8)),
        "Stream": FakeStream,
        "Event": FakeEvent,
    }


@contextlib.contextmanager
def pretended(gpu: Gpu) -> Iterator[None]:
    """While it lasts, `torch.cuda` answers as if `gpu` were there."""
    with contextlib.ExitStack() as undo:

        def put(owner: Any, name: str, value: Any) -> None:
            undo.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

        for name, value in _replacements(gpu).items():
            if hasattr(torch.cuda, name):
                put(torch.cuda, name, value)
        put(torch, "Generator", FakeGenerator)
        put(torch.nn.Module, "_apply", _apply)
        put(torch.testing, "assert_close", _assert_close)
        put(torch, "get_default_device", lambda: torch.device("cpu"))
        yield


def _apply(module: Any, change: Any, recurse: bool = True) -> Any:
    """torch.nn.Module._apply by new parameters: torch cannot exchange the contents of fake ones."""
    for child in module.children() if recurse else ():
        child._apply(change)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            with torch.no_grad():
                changed = change(parameter)
            if changed is not parameter:
                module._parameters[name] = torch.nn.Parameter(changed, parameter.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = change(buffer)
    return module


def _assert_close(actual: Any, expected: Any, *_tolerances: Any, **options: Any) -> None:
    """torch.testing.assert_close for the row that runs now."""
    for mode in torch.overrides._get_current_function_mode_stack():
        if isinstance(mode, ClaimMode):
            return mode.assert_close(actual, expected, **options)
    raise RuntimeError("tensors were compared outside a test row")

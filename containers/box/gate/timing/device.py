"""What the child needs of its device, kept before any code of a tree is imported: CUDA, or a CPU for tests."""

import ctypes
import time
from collections.abc import Callable

import torch

from containers.box.gate import collector


class Device:
    """The CUDA device if there is one, else the CPU, where only the order of things is meant."""

    def __init__(self, flush_factor: float) -> None:
        self.name = "cuda" if torch.cuda.is_available() else "cpu"
        self._synchronize: Callable[[], None] = lambda: None
        self._driver: ctypes.CDLL | None = None
        self._scratch: torch.Tensor | None = None
        self._fill = torch.Tensor.fill_
        self._empty_cache: Callable[[], None] = lambda: None
        if self.name == "cuda":
            torch.cuda.init()
            self._synchronize = torch._C._cuda_synchronize
            self._empty_cache = torch.cuda.empty_cache
            self._driver = ctypes.CDLL("libcuda.so.1")
            l2_bytes = int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)) or 64 << 20
            self._scratch = torch.empty(int(flush_factor * l2_bytes) // 4, dtype=torch.int32, device="cuda")
        self._sleep, self._flush = time.sleep, collector.flush
        self._begin, self._end = collector.begin, collector.end

    def synchronize(self) -> None:
        """Wait for all work of all streams."""
        self._synchronize()

    def cold(self, value: int) -> None:
        """Give up persisting lines of the L2 cache and write over it."""
        if self._driver is not None and self._scratch is not None:
            self._driver.cuCtxResetPersistingL2Cache()
            self._fill(self._scratch, value & 0x7FFFFFFF)

    def flush(self, token: int) -> None:
        """Deliver the records of what is done; the device is synchronised before."""
        self._synchronize()
        self._flush(token)

    def later(self, seconds: float, token: int) -> None:
        """As `flush`, after a while."""
        self._sleep(seconds)
        self.flush(token)

    def end(self) -> None:
        """Collect nothing: a profiler that the set-up runs, in a tuner say, has CUPTI to itself."""
        self._synchronize()
        self._end()

    def begin(self) -> None:
        """Collect again."""
        self._synchronize()
        self._begin()

    def release(self) -> None:
        """Give cached memory back to the other processes."""
        self._empty_cache()

"""What the child needs of its device, kept before any code of a tree is imported: CUDA, or a CPU for tests."""

import ctypes
import random
import time
from collections import deque
from collections.abc import Callable

import torch

from containers.box.gate import collector

#: Sizes of what is put into memory so that the next tensors lie elsewhere, bytes: within a segment of the
#: allocator's small pool, segments of either pool, and more than one.
_PADS = (512, 4096, 1 << 18, 1 << 20, 3 << 20, 12 << 20, 34 << 20)
#: So many of the latest pads stay, so that memory that is freed is not handed out again at once.
_KEPT = 24


class Device:
    """The CUDA device if there is one, else the CPU, where only the order of things is meant."""

    def __init__(self, flush_factor: float) -> None:
        self.name = "cuda" if torch.cuda.is_available() else "cpu"
        self._synchronize: Callable[[], None] = lambda: None
        self._driver: ctypes.CDLL | None = None
        self._scratch: torch.Tensor | None = None
        self._fill = torch.Tensor.fill_
        self._empty_cache: Callable[[], None] = lambda: None
        self._empty, self._random = torch.empty, random.Random
        self._pads: deque[torch.Tensor] = deque(maxlen=_KEPT)
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

    def displace(self, placement: int) -> None:
        """Have the tensors that are made from now on lie elsewhere than those of other placements."""
        chance = self._random(placement)
        for _ in range(chance.randrange(1, 6)):
            self._pads.append(self._empty(chance.choice(_PADS), dtype=torch.uint8, device=self.name))

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

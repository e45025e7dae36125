"""Clock and throttle reasons of the GPU, by NVML, read in the parent."""

import ctypes
import os
from typing import NamedTuple

#: Slowdown by hardware, thermal (software, hardware) and power brake, as in nvml.h; a power cap is no fault.
MATTERS = 0x8 | 0x20 | 0x40 | 0x80
_SM_CLOCK = 1


class Reading(NamedTuple):
    """None: not readable."""

    sm_clock_mhz: int | None
    throttle: int | None  #: mask of the reasons in MATTERS that hold now


class Clocks:
    """The GPU that children see first: by CUDA_VISIBLE_DEVICES, an index or a UUID."""

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None
        self._device = ctypes.c_void_p()
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0 and self._find(library) == 0:
            self._library = library

    def _find(self, library: ctypes.CDLL) -> int:
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
        if first.isdigit():
            return int(
                library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(first)), ctypes.byref(self._device))
            )
        return int(library.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(self._device)))

    def read(self) -> Reading:
        """What holds now."""
        if self._library is None:
            return Reading(None, None)
        clock, reasons = ctypes.c_uint(), ctypes.c_ulonglong()
        got_clock = self._library.nvmlDeviceGetClockInfo(self._device, _SM_CLOCK, ctypes.byref(clock)) == 0
        ask = self._library.nvmlDeviceGetCurrentClocksThrottleReasons
        got_reasons = ask(self._device, ctypes.byref(reasons)) == 0
        return Reading(
            int(clock.value) if got_clock else None, int(reasons.value) & MATTERS if got_reasons else None
        )

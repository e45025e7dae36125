# SPDX-License-Identifier: MIT
"""Launch a kernel of libloops.so by its name."""

import ctypes
import functools
from pathlib import Path

import torch

LIBRARY = Path(__file__).with_name("libloops.so")
_DTYPES = {torch.float32: 0, torch.float16: 1}


@functools.cache
def _library():
    return ctypes.CDLL(str(LIBRARY))


def launch(stream, grid, kernel, args):
    """Call `kernel(grid[0], dtype code, *args)`: tensors become addresses, floats doubles, the rest int64."""
    dtype = next(arg.dtype for arg in args if isinstance(arg, torch.Tensor))
    if dtype not in _DTYPES:
        raise TypeError(f"{kernel}: no loop for {dtype}")
    values = [ctypes.c_int64(grid[0]), ctypes.c_int32(_DTYPES[dtype])]
    for arg in args:
        if isinstance(arg, torch.Tensor):
            values.append(ctypes.c_void_p(arg.data_ptr()))
        elif isinstance(arg, float):
            values.append(ctypes.c_double(arg))
        else:
            values.append(ctypes.c_int64(arg))
    getattr(_library(), kernel)(*values)

# SPDX-License-Identifier: MIT
"""Load and call libcpugym_kernels.so, the one library of the backend `native`."""

import ctypes
import functools
from pathlib import Path

import torch

_DTYPES = {torch.float32: 0, torch.float16: 1}
_MAX_DIMS = 5
_RC_TEXT = {-2: "no kernel for this dtype", -3: "the launch failed", -5: "a tensor is missing"}


class TensorDesc(ctypes.Structure):
    """The same record as in ops/native/kernels/desc.h; strides count elements."""

    _fields_ = [
        ("ptr", ctypes.c_uint64),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.c_int64 * _MAX_DIMS),
        ("strides", ctypes.c_int64 * _MAX_DIMS),
        ("dtype", ctypes.c_int32),
    ]


def library_path():
    """Where the build leaves the library."""
    return Path(__file__).parents[1] / "ops" / "native" / "kernels" / "build" / "libcpugym_kernels.so"


@functools.cache
def library():
    return ctypes.CDLL(str(library_path()))


def describe(tensor):
    """A pointer argument that describes the tensor. Raises NotImplementedError for other dtypes."""
    if tensor.dtype not in _DTYPES:
        raise NotImplementedError(f"native has no code for {tensor.dtype}")
    desc = TensorDesc(ptr=tensor.data_ptr(), ndim=tensor.dim(), dtype=_DTYPES[tensor.dtype])
    for axis, (extent, stride) in enumerate(zip(tensor.shape, tensor.stride())):
        desc.shape[axis] = extent
        desc.strides[axis] = stride
    return ctypes.byref(desc)


def check_rc(rc, function):
    """Raise RuntimeError unless the library's return code is 0."""
    if rc != 0:
        raise RuntimeError(f"{function}: {_RC_TEXT.get(rc, 'failed')} (rc {rc})")

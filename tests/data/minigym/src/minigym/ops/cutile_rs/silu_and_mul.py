# SPDX-License-Identifier: MIT
"""silu of the left half times the right half, computed by libcutile_kernels.so."""

import torch

from minigym.backend import register_impl
from minigym.backend.cutile_rs.utils import bind_kernel_function_cffi
from minigym.backend.cutile_rs.utils import check_rc
from minigym.backend.cutile_rs.utils import make_tensor_desc
from minigym.backend.cutile_rs.utils import next_power_of_2

_CDEF = """
int32_t cutile_silu_and_mul(
    const TensorDesc* x, const TensorDesc* y, int32_t tile,
    int32_t num_cta_in_cga, int32_t occupancy, int32_t device_id, uint64_t raw_stream);
"""


@register_impl("silu_and_mul", backend="cutile-rs")
def silu_and_mul(x, out=None):
    if x.shape[-1] % 2 != 0:
        raise ValueError(f"the last extent has to be even, got {x.shape[-1]}")
    width = x.shape[-1] // 2
    rows = x.contiguous().view(-1, 2 * width)
    y = torch.empty((rows.shape[0], width), dtype=x.dtype, device=x.device)
    ffi, lib = bind_kernel_function_cffi("silu_and_mul", _CDEF)
    x_desc = make_tensor_desc(ffi, rows)
    y_desc = make_tensor_desc(ffi, y)
    device_id = x.device.index if x.device.index is not None else torch.cuda.current_device()
    stream = torch.cuda.current_stream(device=x.device).cuda_stream
    rc = lib.cutile_silu_and_mul(x_desc, y_desc, next_power_of_2(width), -1, -1, int(device_id), int(stream))
    check_rc(rc, "cutile_silu_and_mul")
    result = y.view(*x.shape[:-1], width)
    return result if out is None else out.copy_(result)

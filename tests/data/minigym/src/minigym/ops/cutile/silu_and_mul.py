# SPDX-License-Identifier: MIT
"""silu of the left half times the right half: one block a row, the row's tail masked."""

import cuda.tile as ct
import torch

from minigym.backend import register_impl

from .utils import next_power_of_2

ConstInt = ct.Constant[int]


@ct.kernel
def _silu_and_mul_kernel(x, y, WIDTH: ConstInt, TILE: ConstInt):
    row = ct.bid(0)
    column = ct.arange(TILE, dtype=ct.int32)
    inside = column < WIDTH
    gate = ct.gather(x, (row, column), mask=inside).astype(ct.float32)
    value = ct.gather(x, (row, column + WIDTH), mask=inside).astype(ct.float32)
    sigmoid = ct.truediv(1.0, 1.0 + ct.exp(-gate), flush_to_zero=True, rounding_mode=ct.RoundingMode.APPROX)
    result = gate * sigmoid * value
    ct.scatter(y, (row, column), result.astype(y.dtype))


@register_impl("silu_and_mul", backend="cutile")
def silu_and_mul(x, out=None):
    if x.shape[-1] % 2 != 0:
        raise ValueError(f"the last extent has to be even, got {x.shape[-1]}")
    width = x.shape[-1] // 2
    rows = x.contiguous().view(-1, 2 * width)
    y = torch.empty((rows.shape[0], width), dtype=x.dtype, device=x.device)
    grid = (rows.shape[0], 1, 1)
    ct.launch(torch.cuda.current_stream(), grid, _silu_and_mul_kernel, (rows, y, width, next_power_of_2(width)))
    result = y.view(*x.shape[:-1], width)
    return result if out is None else out.copy_(result)

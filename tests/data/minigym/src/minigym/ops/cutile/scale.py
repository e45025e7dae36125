# SPDX-License-Identifier: MIT
"""x * alpha: whole blocks go without bounds checks, anything else pays for them."""

import cuda.tile as ct
import torch

from minigym.backend import register_impl

from .utils import cdiv


@ct.kernel
def _scale_whole_kernel(x, y, alpha, BLOCK: ct.Constant[int]):
    index = ct.bid(0) * BLOCK + ct.arange(BLOCK, dtype=ct.int32)
    value = ct.gather(x, index, check_bounds=False)
    result = ct.astype(value, ct.float32) * alpha
    ct.scatter(y, index, ct.astype(result, y.dtype), check_bounds=False)


@ct.kernel
def _scale_tail_kernel(x, y, alpha, BLOCK: ct.Constant[int]):
    index = ct.bid(0) * BLOCK + ct.arange(BLOCK, dtype=ct.int32)
    value = ct.gather(x, index, padding_value=0)
    result = ct.astype(value, ct.float32) * alpha
    ct.scatter(y, index, ct.astype(result, y.dtype))


@register_impl("scale", backend="cutile")
def scale(x, alpha):
    y = torch.empty_like(x)
    n = x.numel()
    BLOCK = 512
    grid = (cdiv(n, BLOCK), 1, 1)
    stream = torch.cuda.current_stream()
    if n % BLOCK == 0:
        ct.launch(stream, grid, _scale_whole_kernel, (x.view(-1), y.view(-1), alpha, BLOCK))
    else:
        ct.launch(stream, grid, _scale_tail_kernel, (x.view(-1), y.view(-1), alpha, BLOCK))
    return y

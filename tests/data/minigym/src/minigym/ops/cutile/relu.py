# SPDX-License-Identifier: MIT
"""max(x, 0): one block a stretch of BLOCK elements, the last one cut off by the bounds check."""

import cuda.tile as ct
import torch

from minigym.backend import register_impl

from .utils import cdiv


@ct.kernel
def _relu_kernel(x, y, BLOCK: ct.Constant[int]):
    index = ct.bid(0) * BLOCK + ct.arange(BLOCK, dtype=ct.int32)
    value = ct.gather(x, index)
    zero = ct.zeros((BLOCK,), dtype=value.dtype)
    ct.scatter(y, index, ct.maximum(value, zero))


@register_impl("relu", backend="cutile")
def relu(x):
    y = torch.empty_like(x)
    n = x.numel()
    BLOCK = 1024
    grid = (cdiv(n, BLOCK), 1, 1)
    ct.launch(torch.cuda.current_stream(), grid, _relu_kernel, (x.view(-1), y.view(-1), BLOCK))
    return y

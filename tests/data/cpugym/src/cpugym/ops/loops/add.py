# SPDX-License-Identifier: MIT
"""add, forward only."""

import loop.tile as lt
import torch

from cpugym.backend import register_impl


@register_impl("add", backend="loops")
def add(x, y, out=None):
    x, y = x.contiguous(), y.contiguous()
    z = torch.empty_like(x)
    lt.launch(None, (x.numel(),), "add_kernel", (x, y, z))
    return z if out is None else out.copy_(z)

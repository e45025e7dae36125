# SPDX-License-Identifier: MIT
"""relu with its backward, computed by libcpugym_kernels.so."""

import torch

from cpugym.backend import register_impl
from cpugym.backend.native import check_rc
from cpugym.backend.native import describe
from cpugym.backend.native import library


class _Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        check_rc(library().cpu_relu(describe(x), describe(y)), "cpu_relu")
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        dy = dy.contiguous()
        check_rc(library().cpu_relu_backward(describe(x), describe(dy), describe(dx)), "cpu_relu_backward")
        return dx


@register_impl("relu", backend="native")
def relu(x):
    return _Relu.apply(x.contiguous())

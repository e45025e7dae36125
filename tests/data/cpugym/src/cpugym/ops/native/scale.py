# SPDX-License-Identifier: MIT
"""scale, computed by libcpugym_kernels.so."""

import ctypes

import torch

from cpugym.backend import register_impl
from cpugym.backend.native import check_rc
from cpugym.backend.native import describe
from cpugym.backend.native import library


@register_impl("scale", backend="native")
def scale(x, alpha):
    x = x.contiguous()
    y = torch.empty_like(x)
    check_rc(library().cpu_scale(describe(x), describe(y), ctypes.c_float(alpha)), "cpu_scale")
    return y

# SPDX-License-Identifier: MIT
"""The fallback: what each operator means, in PyTorch."""

import torch

from minigym.backend import register_impl


@register_impl("relu", backend="pytorch")
def relu(x):
    return torch.relu(x)


@register_impl("silu_and_mul", backend="pytorch")
def silu_and_mul(x, out=None):
    gate, value = x.chunk(2, dim=-1)
    result = torch.nn.functional.silu(gate) * value
    return result if out is None else out.copy_(result)


@register_impl("add_bias", backend="pytorch")
def add_bias(x, bias):
    return x + bias


@register_impl("scale", backend="pytorch")
def scale(x, alpha):
    return (x.float() * alpha).to(x.dtype)

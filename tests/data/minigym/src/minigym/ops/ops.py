# SPDX-License-Identifier: MIT
"""Signatures of the operators. The bodies run only where no backend has registered one."""

import torch

from minigym.backend import dispatch
from minigym.backend import get_current_backend


def _missing(name: str) -> NotImplementedError:
    return NotImplementedError(f"{name}: no implementation for {get_current_backend()}")


@dispatch("relu")
def relu(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0), elementwise. `x`: any shape, contiguous."""
    raise _missing("relu")


@dispatch("silu_and_mul")
def silu_and_mul(x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """silu(x[..., :h]) * x[..., h:] with h half of the last extent."""
    raise _missing("silu_and_mul")


@dispatch("add_bias")
def add_bias(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x + bias, the bias vector added to every row. `x`: (rows, columns), `bias`: (columns,)."""
    raise _missing("add_bias")


@dispatch("scale")
def scale(x: torch.Tensor, alpha: float) -> torch.Tensor:
    """x * alpha, elementwise, computed in float32. `x`: any shape, contiguous."""
    raise _missing("scale")

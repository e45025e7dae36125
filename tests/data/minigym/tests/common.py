# SPDX-License-Identifier: MIT
"""What the operators' tests share."""

import pytest
import torch

import minigym

#: dtype -> (relative, absolute) tolerance of an elementwise result
TOLERANCES = {
    torch.float32: (1e-4, 1e-5),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
}


def choose(backend: str) -> None:
    """Make `backend` the current one, or skip the row."""
    if not minigym.is_backend_available(backend):
        pytest.skip(f"backend {backend} does not work here")
    minigym.set_backend(backend)


def check(result: torch.Tensor, expected: torch.Tensor) -> None:
    """The row's final comparison: shape, dtype, values."""
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    rtol, atol = TOLERANCES[result.dtype]
    assert torch.allclose(result, expected, rtol=rtol, atol=atol)


def measure(function, repeats: int = 50) -> float:
    """Mean milliseconds of a call on the device, by events, after a warm-up."""
    for _ in range(5):
        function()
    begin = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        function()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeats

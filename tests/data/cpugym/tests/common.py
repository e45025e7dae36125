# SPDX-License-Identifier: MIT
"""What the operators' tests share."""

import time

import pytest
import torch

import cpugym

#: dtype -> (relative, absolute) tolerance
TOLERANCES = {torch.float32: (1e-5, 1e-6), torch.float16: (2e-3, 1e-3)}


class PyTestCase:
    """Base of the test classes."""

    def choose(self, backend):
        """Make `backend` the current one, or skip the row."""
        if not cpugym.is_backend_available(backend):
            pytest.skip(f"backend {backend} does not work here")
        cpugym.set_backend(backend)

    def assertCorrectness(
        self, test_fn, ref_fn, kwargs, extra_test_kwargs=None, gradient=None, rtol=None, atol=None
    ):
        """Compare results, and gradients of the arguments that want them when the result can give them."""
        wanting = {k: v for k, v in kwargs.items() if isinstance(v, torch.Tensor) and v.requires_grad}
        copies = {k: v.detach().clone() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        for name in wanting:
            copies[name].requires_grad_()
        result = test_fn(**kwargs, **(extra_test_kwargs or {}))
        expected = ref_fn(**copies)
        own_rtol, own_atol = TOLERANCES[expected.dtype]
        rtol, atol = own_rtol if rtol is None else rtol, own_atol if atol is None else atol
        torch.testing.assert_close(result, expected, rtol=rtol, atol=atol)
        if not result.requires_grad:
            return
        gradient = torch.ones_like(expected) if gradient is None else gradient
        result.backward(gradient)
        expected.backward(gradient)
        for name, argument in wanting.items():
            torch.testing.assert_close(argument.grad, copies[name].grad, rtol=rtol, atol=atol)


def benchmark_framework(framework, function, repeats=20):
    """Mean seconds of a call, after a warm-up."""
    for _ in range(3):
        function()
    begin = time.perf_counter()
    for _ in range(repeats):
        function()
    return {framework: (time.perf_counter() - begin) / repeats}

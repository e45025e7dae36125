# SPDX-License-Identifier: MIT
import pytest
import torch

import cpugym
from cpugym.backend import is_backend_available
from tests import common


class TestScale(common.PyTestCase):
    @staticmethod
    def reference(x, alpha):
        return (x.float() * alpha).to(x.dtype)

    _backends = ["loops"]
    if is_backend_available("native"):
        _backends = _backends + ["native"]
    _frameworks = _backends + ["pytorch"]

    @pytest.mark.parametrize(
        "shape, alpha, dtype",
        [
            ((8, 64), 0.5, torch.float32),
            ((8, 64), -1.25, torch.float16),
            ((37, 11), 3.0, torch.float32),
        ],
    )
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, shape, alpha, dtype, backend):
        self.choose(backend)
        x = torch.randn(shape, dtype=dtype)
        self.assertCorrectness(cpugym.ops.scale, self.reference, {"x": x, "alpha": alpha})

    @pytest.mark.parametrize("backend", _backends)
    def test_strided(self, backend):
        self.choose(backend)
        x = torch.randn(16, 9).t()
        self.assertCorrectness(cpugym.ops.scale, self.reference, {"x": x, "alpha": 2.0})

    @pytest.mark.parametrize("n", [1 << 12, 1 << 16])
    @pytest.mark.parametrize("framework", _frameworks)
    def test_perf(self, n, framework, record_property):
        x = torch.randn(n)
        if framework == "pytorch":
            function = lambda: self.reference(x, 0.5)
        else:
            self.choose(framework)
            function = lambda: cpugym.ops.scale(x, 0.5)
        record_property("benchmark", common.benchmark_framework(framework, function))

# SPDX-License-Identifier: MIT
import pytest
import torch

import cpugym
from cpugym.backend import is_backend_available
from tests import common


class TestAdd(common.PyTestCase):
    @staticmethod
    def reference(x, y):
        return x + y

    _backends = ["loops"]
    if is_backend_available("native"):
        _backends = _backends + ["native"]
    _frameworks = _backends + ["pytorch"]

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
    @pytest.mark.parametrize("shape", [(8, 64), (5, 3), (1,)])
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, shape, dtype, backend):
        self.choose(backend)
        x, y = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
        self.assertCorrectness(cpugym.ops.add, self.reference, {"x": x, "y": y})

    @pytest.mark.parametrize("backend", _backends)
    def test_out(self, backend):
        self.choose(backend)
        x, y, out = torch.randn(3, 50), torch.randn(3, 50), torch.empty(3, 50)
        assert cpugym.ops.add(x, y, out=out) is out
        assert torch.allclose(out, x + y)

    @pytest.mark.parametrize("n", [1 << 12, 1 << 16])
    @pytest.mark.parametrize("framework", _frameworks)
    def test_perf(self, n, framework, record_property):
        x, y = torch.randn(n), torch.randn(n)
        if framework == "pytorch":
            function = lambda: self.reference(x, y)
        else:
            self.choose(framework)
            function = lambda: cpugym.ops.add(x, y)
        record_property("benchmark", common.benchmark_framework(framework, function))

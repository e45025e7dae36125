# SPDX-License-Identifier: MIT
import pytest
import torch

import cpugym
from cpugym.backend import is_backend_available
from tests import common


class TestRelu(common.PyTestCase):
    @staticmethod
    def reference(x):
        return torch.relu(x)

    _backends = ["loops"]
    if is_backend_available("native"):
        _backends = _backends + ["native"]
    _frameworks = _backends + ["pytorch"]

    @pytest.mark.parametrize(
        "shape, dtype",
        [
            ((8, 64), torch.float32),
            ((8, 64), torch.float16),
            ((3, 5, 7), torch.float32),
            ((9,), torch.float16),
        ],
    )
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, shape, dtype, backend):
        self.choose(backend)
        x = torch.randn(shape, dtype=dtype, requires_grad=True)
        self.assertCorrectness(cpugym.ops.relu, self.reference, {"x": x}, gradient=torch.randn(shape, dtype=dtype))

    @pytest.mark.parametrize("n", [1 << 12, 1 << 16])
    @pytest.mark.parametrize("framework", _frameworks)
    def test_perf(self, n, framework, record_property):
        x = torch.randn(n)
        if framework == "pytorch":
            function = lambda: self.reference(x)
        else:
            self.choose(framework)
            function = lambda: cpugym.ops.relu(x)
        record_property("benchmark", common.benchmark_framework(framework, function))

# SPDX-License-Identifier: MIT
import pytest
import torch

import minigym
from tests import common


class TestRelu:
    _backends = ["cutile"]
    _frameworks = _backends + ["pytorch"]

    @pytest.mark.parametrize(
        "shape, dtype",
        [
            ((64, 256), torch.float16),
            ((64, 256), torch.bfloat16),
            ((64, 256), torch.float32),
            ((4, 8, 128), torch.float32),
            ((1000,), torch.float32),
            ((37, 111), torch.float16),
            ((13, 77), torch.bfloat16),
            ((1,), torch.float32),
        ],
    )
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, shape, dtype, backend):
        common.choose(backend)
        x = torch.randn(shape, dtype=dtype, device="cuda")
        common.check(minigym.ops.relu(x), torch.relu(x))

    @pytest.mark.parametrize("n", [1 << 16, 1 << 22])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    @pytest.mark.parametrize("framework", _frameworks)
    def test_perf(self, n, dtype, framework, record_property):
        common.choose(framework)
        x = torch.randn(n, dtype=dtype, device="cuda")
        record_property("mean_ms", common.measure(lambda: minigym.ops.relu(x)))

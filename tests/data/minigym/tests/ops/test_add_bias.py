# SPDX-License-Identifier: MIT
import pytest
import torch

import minigym
from tests import common


class TestAddBias:
    _backends = ["cutile"]
    _frameworks = _backends + ["pytorch"]

    @pytest.mark.parametrize(
        "rows, columns, dtype",
        [
            (16, 256, torch.float16),
            (16, 256, torch.bfloat16),
            (16, 256, torch.float32),
            (64, 1024, torch.float32),
            (7, 256, torch.float16),
            (4, 300, torch.float32),
            (13, 77, torch.bfloat16),
            (1, 1, torch.float32),
        ],
    )
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, rows, columns, dtype, backend):
        common.choose(backend)
        x = torch.randn(rows, columns, dtype=dtype, device="cuda")
        bias = torch.randn(columns, dtype=dtype, device="cuda")
        common.check(minigym.ops.add_bias(x, bias), x + bias)

    @pytest.mark.parametrize("columns", [1024, 4096])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    @pytest.mark.parametrize("framework", _frameworks)
    def test_perf(self, columns, dtype, framework, record_property):
        common.choose(framework)
        x = torch.randn(2048, columns, dtype=dtype, device="cuda")
        bias = torch.randn(columns, dtype=dtype, device="cuda")
        record_property("mean_ms", common.measure(lambda: minigym.ops.add_bias(x, bias)))

# SPDX-License-Identifier: MIT
import pytest
import torch

import minigym
from tests import common


class TestScale:
    _backends = ["cutile"]
    _frameworks = _backends + ["pytorch"]

    @pytest.mark.parametrize(
        "shape, alpha, dtype",
        [
            ((8, 512), 0.5, torch.float16),
            ((8, 512), 0.5, torch.bfloat16),
            ((8, 512), 0.5, torch.float32),
            ((2, 3, 256), -1.25, torch.float32),
            ((1000,), 3.0, torch.float32),
            ((37, 111), -0.75, torch.float16),
            ((13, 77), 2.5, torch.bfloat16),
        ],
    )
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, shape, alpha, dtype, backend):
        common.choose(backend)
        x = torch.randn(shape, dtype=dtype, device="cuda")
        common.check(minigym.ops.scale(x, alpha), (x.float() * alpha).to(dtype))

    @pytest.mark.parametrize("n", [1 << 16, 1 << 22])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    @pytest.mark.parametrize("framework", _frameworks)
    def test_perf(self, n, dtype, framework, record_property):
        common.choose(framework)
        x = torch.randn(n, dtype=dtype, device="cuda")
        record_property("mean_ms", common.measure(lambda: minigym.ops.scale(x, 0.5)))

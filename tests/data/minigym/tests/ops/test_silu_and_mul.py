# SPDX-License-Identifier: MIT
import pytest
import torch

import minigym
from minigym.backend import is_backend_available
from tests import common


def reference(x):
    gate, value = x.float().chunk(2, dim=-1)
    return (torch.nn.functional.silu(gate) * value).to(x.dtype)


class TestSiluAndMul:
    _backends = ["cutile"]
    if is_backend_available("cutile-rs"):
        _backends = _backends + ["cutile-rs"]
    _frameworks = _backends + ["pytorch"]

    @pytest.mark.parametrize(
        "shape, dtype",
        [
            ((8, 512), torch.float16),
            ((8, 512), torch.bfloat16),
            ((8, 512), torch.float32),
            ((2, 5, 256), torch.float32),
            ((7, 200), torch.float16),
            ((3, 66), torch.bfloat16),
            ((1, 2), torch.float32),
            ((5, 2000), torch.float32),
        ],
    )
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, shape, dtype, backend):
        common.choose(backend)
        x = torch.randn(shape, dtype=dtype, device="cuda")
        common.check(minigym.ops.silu_and_mul(x), reference(x))

    @pytest.mark.parametrize("width", [512, 4096])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    @pytest.mark.parametrize("framework", _frameworks)
    def test_perf(self, width, dtype, framework, record_property):
        common.choose(framework)
        x = torch.randn(1024, 2 * width, dtype=dtype, device="cuda")
        record_property("mean_ms", common.measure(lambda: minigym.ops.silu_and_mul(x)))

# SPDX-License-Identifier: MIT
import pytest
import torch

DTYPE_NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


def pytest_make_parametrize_id(config, val, argname):
    return DTYPE_NAMES.get(val) if isinstance(val, torch.dtype) else None


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(1234)

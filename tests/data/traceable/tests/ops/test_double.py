import mini
import pytest
import torch


@pytest.mark.parametrize("n, dtype", [(4096, torch.float16), (1000, torch.float32)])
@pytest.mark.parametrize("backend", ["cutile", "fake-rs"])
class TestDouble:
    def test_double(self, n, dtype, backend):
        x = torch.randn(n + 64, dtype=dtype, device="cuda")[64:]
        assert x.is_cuda
        out = mini.op("double", backend)(x)
        assert not torch.isnan(out).any()
        torch.testing.assert_close(out, x * 2)

    def test_tuned(self, n, dtype, backend):
        x = torch.randn(n, dtype=dtype, device="cuda")
        error = (mini.op("tuned", backend)(x) - x * 2).abs().max().item()
        assert error < 1e-3

    def test_grad(self, n, dtype, backend):
        x = torch.randn(n, dtype=dtype, device="cuda", requires_grad=True)
        out = mini.op("grad", backend)(x)
        assert torch.allclose(out, x * 2)
        out.backward(torch.ones_like(out))
        assert torch.allclose(x.grad, torch.full_like(x, 2))

    def test_peek(self, n, dtype, backend):
        x = torch.randn(n, dtype=dtype, device="cuda")
        assert torch.equal(mini.op("peek", backend)(x), x * 2)

    def test_wrong_shape(self, n, dtype, backend):
        x = torch.randn(n, dtype=dtype, device="cuda")
        torch.testing.assert_close(mini.op("double", backend)(x), x[1:])

    def test_skipped(self, n, dtype, backend):
        pytest.skip(f"{backend} does not do this")


@pytest.mark.parametrize("framework", ["cutile", "fake-rs"])
def test_perf(framework):
    raise AssertionError("performance cases are not rows")

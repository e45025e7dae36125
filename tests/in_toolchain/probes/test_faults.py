"""Each planted fault is found by some probe, and its honest twin passes all."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from containers.box.gate.probes.plan import plan
from farm.measured.records import Probe, ProbeKind
from tests.in_toolchain.probes.support import Known, call_of, failing, known_of, probed

Op = Callable[..., Any]
BUDGET = 90


def relu(x: torch.Tensor) -> torch.Tensor:
    """The source: keeps NaN, differentiable."""
    return Relu.apply(x)


class Relu(torch.autograd.Function):
    """max(x, 0)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        return y.copy_(torch.where(x < 0, torch.zeros_like(x), x))

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, dy, torch.zeros_like(dy)).contiguous()


def edited(edit: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Op:
    """relu whose forward result is edited by (x, y)."""

    class Edited(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return edit(x, Relu.forward(ctx, x))

        backward = Relu.backward

    return Edited.apply


def loses_nan(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, torch.zeros_like(x)).contiguous()


def loses_the_last_of_an_odd_length(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if y.numel() % 2:
        y.view(-1)[-1:] = 0.0
    return y


def ignores_strides(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dense = x.as_strided((x.numel(),), (1,), x.storage_offset()) if x.numel() else x
    return y.copy_(dense.clamp(min=0).reshape(x.shape))


def reads_past_the_end(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.numel() and x.is_contiguous():
        beyond = x.as_strided((x.numel() + 1,), (1,), x.storage_offset())[-1]
        y.view(-1)[-1] += beyond * 1e-3
    return y


def skips_the_last_element(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    left = torch.empty_like(y)
    left.view(-1)[:-1] = y.view(-1)[:-1]
    return left


def writes_beside_its_argument(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.numel() and x.is_contiguous():
        x.as_strided((x.numel() + 1,), (1,), x.storage_offset())[-1] = 0.0
    return y


def does_not_repeat(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y * (1.0 + random.random() * 1e-6)


def knows_one_shape(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y if tuple(x.shape) == (8, 48) else y * 0.99


def flushes_denormals(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(y.abs() < torch.finfo(y.dtype).smallest_normal, torch.zeros_like(y), y)


def overflows_early(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y.to(torch.float16).to(y.dtype)


def gives_another_layout(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y.t().contiguous().t()


def gives_another_type(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y.double()


def has_a_wrong_sign_of_infinity(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(y.isinf(), -y, y)


def refuses_what_is_empty(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not x.numel():
        raise ValueError("empty")
    return y


_LAST: dict[Any, torch.Tensor] = {}


def remembers_by_shape(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return _LAST.setdefault((tuple(x.shape), x.dtype), y.clone()).clone()


def changes_its_argument(x: torch.Tensor) -> torch.Tensor:
    y = relu(x)
    with torch.no_grad():
        x.clamp_(min=0)
    return y


def has_no_way_back(x: torch.Tensor) -> torch.Tensor:
    return relu(x.detach())


def ignores_the_gradients_strides(x: torch.Tensor) -> torch.Tensor:
    class Careless(torch.autograd.Function):
        forward = Relu.forward

        @staticmethod
        def backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
            dense = dy.untyped_storage()
            flat = torch.tensor([], dtype=dy.dtype).set_(dense)[: dy.numel()]
            flat = flat if flat.numel() == dy.numel() else flat.new_zeros(dy.numel())
            return Relu.backward(ctx, flat.view(dy.shape))

    return Careless.apply(x)


FORWARD = [
    loses_nan,
    loses_the_last_of_an_odd_length,
    ignores_strides,
    reads_past_the_end,
    skips_the_last_element,
    writes_beside_its_argument,
    does_not_repeat,
    knows_one_shape,
    flushes_denormals,
    overflows_early,
    gives_another_layout,
    gives_another_type,
    has_a_wrong_sign_of_infinity,
    refuses_what_is_empty,
    remembers_by_shape,
]
WHOLE = [changes_its_argument, has_no_way_back, ignores_the_gradients_strides]


def records(source: Op, target: Op, reference: Op | None, *args: Any, backward: bool) -> list[Probe]:
    calls = [call_of("op", *args, backward=backward)]
    return [probed(case, source, target, reference) for case in plan(calls, BUDGET)]


@pytest.fixture(scope="module")
def known() -> list[Known]:
    """What relu itself and exact arithmetic give for its cases."""
    return [known_of(case, relu, torch.relu) for case in plan([call_of("op", x(), backward=True)], BUDGET)]


def x() -> torch.Tensor:
    return torch.randn(8, 48, generator=torch.Generator().manual_seed(5)).requires_grad_()


@pytest.mark.parametrize("fault", FORWARD, ids=lambda fault: fault.__name__)
def test_a_fault_of_the_forward_pass_is_found(fault: Callable[..., torch.Tensor], known: list[Known]) -> None:
    _LAST.clear()
    assert failing(one.record(edited(fault)) for one in known)


@pytest.mark.parametrize("fault", WHOLE, ids=lambda fault: fault.__name__)
def test_a_fault_of_the_call_is_found(fault: Op, known: list[Known]) -> None:
    assert failing(one.record(fault) for one in known)


def test_the_honest_twin_passes_every_probe(known: list[Known]) -> None:
    made = [one.record(edited(lambda x, y: y)) for one in known]
    assert failing(made) == []
    assert {record.kind for record in made} == set(ProbeKind)
    assert all(record.source_raised is None for record in made)


def scale(x: torch.Tensor, alpha: float) -> torch.Tensor:
    return (x.float() * alpha).to(x.dtype).contiguous()


def scale_in_halves(x: torch.Tensor, alpha: float) -> torch.Tensor:
    return (x.half() * alpha).to(x.dtype).contiguous()


@pytest.mark.parametrize("reference", [scale, None], ids=["oracle", "source alone"])
def test_lower_precision_is_found(reference: Op | None) -> None:
    data = x().detach()
    low = records(scale, scale_in_halves, reference, data, 1.7, backward=False)
    assert failing(low)
    same = records(scale, lambda x, alpha: (x.float() * alpha).contiguous(), reference, data, 1.7, backward=False)
    assert failing(same) == []


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.float() @ b.float()).to(a.dtype)


def matmul_by_pieces(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same sums in another order."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], 16):
        total += a.float()[:, start : start + 16] @ b.float()[start : start + 16]
    return total.to(a.dtype)


def matmul_without_tail(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    k = a.shape[1] - a.shape[1] % 8 if a.shape[1] > 8 else a.shape[1]
    return matmul(a[:, :k], b[:k])


def matmul_in_bfloat16(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.bfloat16().float() @ b.bfloat16().float()).to(a.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_another_order_of_a_sum_passes_and_a_lost_tail_does_not(dtype: torch.dtype) -> None:
    made = torch.Generator().manual_seed(3)
    a, b = torch.randn(24, 64, generator=made).to(dtype), torch.randn(64, 40, generator=made).to(dtype)
    twin = [
        record
        for record in records(matmul, matmul_by_pieces, torch.matmul, a, b, backward=False)
        # Sums of the largest numbers overflow or do not, by their order.
        if record.name != "largest magnitudes"
    ]
    assert failing(twin) == []
    assert failing(records(matmul, matmul_without_tail, torch.matmul, a, b, backward=False))
    if dtype is torch.float32:
        low = records(matmul, matmul_in_bfloat16, torch.matmul, a, b, backward=False)
        assert failing(low)


def softmax(x: torch.Tensor) -> torch.Tensor:
    e = (x.float() - x.float().amax(dim=-1, keepdim=True)).exp()
    return (e / e.sum(dim=-1, keepdim=True)).to(x.dtype).contiguous()


def softmax_without_maximum(x: torch.Tensor) -> torch.Tensor:
    e = x.float().exp()
    return (e / e.sum(dim=-1, keepdim=True)).to(x.dtype).contiguous()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_softmax_that_overflows_is_found(dtype: torch.dtype) -> None:
    data = x().detach().to(dtype)

    def reference(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)

    bad = records(softmax, softmax_without_maximum, reference, data, backward=False)
    assert failing(bad)
    good = records(softmax, lambda x: softmax(x), reference, data, backward=False)
    assert failing(good) == []


def add_into(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x + 1)


def add_into_all_but_one(x: torch.Tensor, out: torch.Tensor) -> None:
    out[:-1].copy_(x[:-1] + 1)


def test_results_in_an_argument_are_compared_and_are_no_changed_input() -> None:
    data, out = x().detach(), torch.zeros(8, 48)
    good = records(add_into, add_into, None, data, out, backward=False)
    assert failing(good) == []
    assert all(record.distance_ulp == 0.0 for record in good if record.kind is ProbeKind.SEED)
    none = records(add_into, lambda x, out: None, None, data, out, backward=False)
    assert all(failing([record]) for record in none if record.kind is ProbeKind.SEED)
    short = records(add_into, add_into_all_but_one, None, data, out, backward=False)
    assert failing(short)
    assert math.isfinite(max(record.distance_ulp or 0.0 for record in short))

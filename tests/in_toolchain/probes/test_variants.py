"""Variants are the same everywhere, change what they say, and keep what they must."""

import math
from dataclasses import replace
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from containers.box.gate.probes.calls import Slot, decode
from containers.box.gate.probes.cases import cotangent_for
from containers.box.gate.probes.layouts import LAYOUTS, place
from containers.box.gate.probes.plan import base_case, plan, shares
from containers.box.gate.probes.shapes import empties, resized, shapes, shrunk, strided
from containers.box.gate.probes.values import EDGES, edges, seeds
from farm.measured.records import ProbeKind
from tests.in_toolchain.probes.support import CPU, call_of

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2]


def two(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(1)
    return torch.randn(8, 48, generator=made).to(dtype), torch.randn(48, generator=made).to(dtype)


def test_a_plan_is_the_same_bits_each_time() -> None:
    one, other = (plan([call_of("op", *two(), 48, backward=True)], 80) for _ in range(2))
    assert [(c.kind, c.name, c.seed) for c in one] == [(c.kind, c.name, c.seed) for c in other]
    for a, b in zip(one, other, strict=True):
        for s, t in zip(a.call.slots, b.call.slots, strict=True):
            assert torch.equal(s.data.view(torch.uint8), t.data.view(torch.uint8))
            assert s.strides == t.strides


def test_a_plan_keeps_its_budget_begins_with_captured_calls_and_has_every_kind_early_on() -> None:
    calls = [call_of("op", *two(dtype), backward=True) for dtype in (torch.float32, torch.float16)]
    cases = plan(calls, 50)
    assert len(cases) == 50
    assert [case.name for case in cases[:4:2]] == ["as captured"] * 2
    assert {case.call.id for case in cases[:2]} == {calls[0].id}
    assert {case.kind for case in cases[:8]} == set(ProbeKind)
    one = plan([replace(calls[0], position=i) for i in range(16)], 100)
    assert sum(case.name == "as captured" for case in one) == 16
    assert {case.kind for case in one[:8]} == set(ProbeKind)
    counts = {kind: sum(case.kind is kind for case in cases) for kind in ProbeKind}
    assert min(counts.values()) >= 8
    assert len({(case.call.slots[0].data.dtype, case.name) for case in cases}) == 50


def test_a_plan_for_less_than_twice_the_calls_has_each_as_it_was_captured() -> None:
    calls = [replace(call_of("op", *two(torch.float32)), position=i) for i in range(6)]
    assert [case.call.position for case in plan(calls, 6)] == [0, 1, 2, 3, 4, 5]
    assert [case.name for case in plan(calls, 11)].count("as captured") == 6
    assert len(plan(calls, 4)) == 4


def test_shares_hold_every_case_once_and_keep_equal_shapes_together() -> None:
    calls = [call_of("op", *two(dtype)) for dtype in (torch.float32, torch.float16)]
    cases = plan(calls, 100)
    split = shares(cases, 4)
    assert sorted(number for numbers in split for number in numbers) == list(range(100))
    assert all(numbers == sorted(numbers) for numbers in split)

    def forms(numbers: list[int]) -> set[tuple[object, ...]]:
        return {
            tuple((slot.data.dtype, slot.data.shape) for slot in cases[number].call.slots) for number in numbers
        }

    assert len(split) == 4
    found = [forms(numbers) for numbers in split]
    assert sum(map(len, found)) == len(set().union(*found))
    compiled = [len(numbers) for numbers in found]
    assert max(compiled) <= 2 * sum(compiled) / 4
    assert shares(cases, 1) == [list(range(100))]
    assert shares(cases[:1], 4) == [[0]]
    assert shares([], 4) == []


@pytest.mark.parametrize("dtype", FLOATS)
def test_edges_are_what_they_say_in_every_type(dtype: torch.dtype) -> None:
    found = {case.name: case.call.slots[0].data.to(torch.float64) for case in edges(call_of("op", two(dtype)[0]))}
    info = torch.finfo(dtype)
    assert found.keys() == EDGES.keys()
    assert found["nan"].isnan().sum() == 4
    assert bool(found["nan everywhere"].isnan().all())
    assert bool(found["nan at the end"][-1, -1].isnan())
    assert found["largest magnitudes"].abs().max() == info.max
    denormals = found["denormals"].abs()
    assert bool(((denormals > 0) & (denormals < info.smallest_normal)).all())
    zeros = found["signed zeros"][found["signed zeros"] == 0]
    assert bool(zeros.signbit().any())
    assert not bool(zeros.signbit().all())
    if dtype is not torch.float8_e4m3fn:
        assert set(found["infinities"][found["infinities"].isinf()].tolist()) == {math.inf, -math.inf}


def test_special_values_leave_every_second_row_as_it_was() -> None:
    x = two()[0]
    (case,) = (c for c in edges(call_of("op", x)) if c.name == "nan")
    assert torch.equal(case.call.slots[0].data[1::2], x[1::2])


def test_seeds_keep_the_range_and_change_the_values() -> None:
    x = two()[0].abs()
    for case in seeds(call_of("op", x)):
        data = case.call.slots[0].data
        assert not torch.equal(data, x)
        assert x.min() <= data.min() <= data.max() <= x.max()


def test_indices_and_masks_are_not_drawn_anew() -> None:
    ids, mask = torch.arange(48), torch.ones(48, dtype=torch.bool)
    for case in [*seeds(call_of("op", two()[0], ids, mask)), *edges(call_of("op", two()[0], ids, mask))]:
        assert torch.equal(case.call.slots[1].data, ids)
        assert torch.equal(case.call.slots[2].data, mask)


def test_axes_of_equal_extent_change_together_with_the_numbers_that_equal_them() -> None:
    call = resized(call_of("op", *two(), (48,), n=48, flag=True, other=8), {48: 7})
    assert call is not None
    assert [tuple(slot.data.shape) for slot in call.slots] == [(8, 7), (7,)]
    args = decode(call.args, [slot.data for slot in call.slots], CPU)
    assert args[2] == (7,)
    assert decode(call.kwargs, (), CPU) == {"n": 7, "flag": True, "other": 8}


def test_indices_stay_inside_an_axis_that_becomes_shorter() -> None:
    call = resized(call_of("op", two()[0], torch.arange(48), torch.tensor([0, 48])), {48: 7})
    assert call is not None
    assert call.slots[1].data.max() <= 6
    assert call.slots[2].data.tolist() == [0, 7]


def test_shapes_include_odd_ones_tiny_ones_and_all_at_once() -> None:
    found = [tuple(c.call.slots[0].data.shape) for c in islice(shapes(call_of("op", two()[0])), 20)]
    assert any(m % 2 and n % 2 for m, n in found)
    assert any(1 in shape for shape in found)
    assert len(set(found)) == len(found)
    assert {tuple(c.call.slots[0].data.shape) for c in empties(call_of("op", two()[0]))} >= {(0, 48), (8, 0)}


def test_an_axis_keeps_its_place_in_memory_when_its_extent_changes() -> None:
    call = resized(call_of("op", torch.randn(48, 8).t()), {48: 5})
    assert call is not None
    assert call.slots[0].strides == (1, 8)


@given(st.lists(st.integers(1, 4096), min_size=1, max_size=3), st.integers(64, 4096))
def test_a_large_call_shrinks_below_its_limit(shape: list[int], most: int) -> None:
    while math.prod(shape) > 1 << 16:
        shape[shape.index(max(shape))] //= 2
    small = shrunk(call_of("op", torch.zeros(shape)), most)
    assert small.elements <= max(most, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bool, torch.int64, torch.float8_e5m2])
@pytest.mark.parametrize("shape", [(6, 10), (5,), (2, 3, 4), (), (3, 0)])
def test_every_layout_holds_the_same_values(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    data = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(2)).to(dtype)
    for case in [base_case(call_of("op", data)), *strided(call_of("op", data))]:
        put = place(case.call.slots[0], CPU, 0xFF)
        assert torch.equal(put.tensor.to(torch.float32), data.to(torch.float32))
        assert put.guards_intact()
        assert put.tensor.stride() == case.call.slots[0].strides


def test_layouts_are_not_contiguous_and_a_misaligned_one_is() -> None:
    found = {case.name: place(case.call.slots[0], CPU, 0).tensor for case in strided(call_of("op", two()[0]))}
    assert set(found) == {f"{name}, all" for name in LAYOUTS} | {"misaligned by one element, all"}
    moved = found.pop("misaligned by one element, all")
    assert moved.is_contiguous()
    assert moved.storage_offset() % 2 == 1
    assert not any(tensor.is_contiguous() for tensor in found.values())


def test_a_write_beside_an_argument_is_seen() -> None:
    slot = Slot(name="x", data=torch.zeros(5), strides=(1,))
    for index in (-1, 5):
        put = place(slot, CPU, 0xFF)
        put.tensor.as_strided((1,), (1,), put.tensor.storage_offset() + index).zero_()
        assert not put.guards_intact()


def test_gradients_that_go_back_are_equal_for_both_sides() -> None:
    like = torch.empty(4, 6, dtype=torch.float16)
    cases = list(strided(call_of("op", two()[0].requires_grad_(), backward=True)))
    expanded, transposed = (next(c for c in cases if c.cotangent == kind) for kind in ("expanded", "transposed"))
    assert cotangent_for(expanded, 0, like).stride() == (0, 0)
    assert cotangent_for(transposed, 0, like).stride() == (1, 4)
    assert torch.equal(cotangent_for(transposed, 0, like), cotangent_for(transposed, 0, like.clone()))

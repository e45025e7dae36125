"""Calls survive their way to another process, and what cannot is left out."""

from pathlib import Path

import pytest
import torch

from containers.box.gate.probes.calls import (
    Slots,
    UnportableArgument,
    contiguous_strides,
    decode,
    encode,
    from_plain,
    load,
    map_numbers,
    save,
    to_plain,
)
from tests.in_toolchain.probes.support import CPU, call_of


def test_arguments_come_back_as_they_were() -> None:
    a, b = torch.zeros(2, 3), torch.ones(4)
    value = ([a, b], {"k": (1, None, "s", 2.5, True), 3: torch.float16}, torch.Size([2]), torch.device("cpu"))
    slots = Slots()
    node = encode(value, slots, "x")
    back = decode(node, slots.tensors, CPU)
    assert back[0][0] is a
    assert back[0][1] is b
    assert back[1:] == ({"k": (1, None, "s", 2.5, True), 3: torch.float16}, (2,), CPU)
    assert slots.names == ["x[0][0]", "x[0][1]"]


def test_a_tensor_that_is_passed_twice_is_one_slot() -> None:
    a = torch.zeros(6)
    slots = Slots()
    encode((a, a.view(6), a[1:]), slots, "x")
    assert len(slots.tensors) == 2


@pytest.mark.parametrize("value", [object(), lambda: 0, {1, 2}, Path("x")])
def test_an_object_of_the_repository_is_not_portable(value: object) -> None:
    with pytest.raises(UnportableArgument, match="a "):
        encode([value], Slots(), "x")


def test_a_call_survives_a_file_that_runs_no_code(tmp_path: Path) -> None:
    call = call_of("op", torch.randn(3, 2).t().requires_grad_(), 2, flag=True, dtype=torch.bfloat16)
    save(tmp_path / "c", to_plain(call))
    back = from_plain(load(tmp_path / "c"))
    assert torch.equal(back.slots[0].data, call.slots[0].data)
    assert (back.slots[0].strides, back.slots[0].wants_grad) == ((1, 2), True)
    assert (back.args, back.kwargs, back.key) == (call.args, call.kwargs, call.key)


def test_numbers_are_changed_and_flags_and_tensors_are_not() -> None:
    slots = Slots()
    node = encode(({"n": 8, "flag": True}, [8, 9], torch.zeros(8)), slots, "x")
    changed = decode(map_numbers(node, lambda n: n + 100), slots.tensors, CPU)
    assert changed[:2] == ({"n": 108, "flag": True}, [108, 109])
    assert changed[2] is slots.tensors[0]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 0, 3), (1, 5, 1)])
def test_strides_of_a_contiguous_tensor_are_torchs(shape: tuple[int, ...]) -> None:
    assert contiguous_strides(shape) == torch.empty(shape).stride()

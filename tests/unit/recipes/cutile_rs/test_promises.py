"""What an entry promises of the arrays that a launch passes."""

import math

import pytest

from farm.recipes.cutile_rs.kernel.divisibility import Divisors
from farm.recipes.cutile_rs.kernel.model import Block, DType, Known, Node, TileType
from farm.recipes.cutile_rs.plan import Quantity, element_promise, promise

I32 = TileType(DType("i32", ("i32",)), ())


def number(value: int) -> Node:
    return Node("constant", I32, attrs={"value": Known((value,))})


def binary(fn: str, *operands: Node) -> Node:
    return Node("binary", I32, operands, {"fn": fn})


@pytest.mark.parametrize(
    ("address", "strides", "steps", "size", "promised"),
    [
        (4096, (8, 1), (1, 0), 2, 16),  # a stride of 16 bytes, index 0 on the other axis
        (4096, (7, 1), (1, 0), 2, 2),
        (4096, (8, 1), (1, 1), 4, 4),  # the element's own size
        (4096, (1,), (4,), 2, 8),  # every fourth element
        (4096, (1,), (64,), 2, 16),
        (4096, (1,), (0,), 4, 16),  # always element 0
        (4100, (8, 1), (1, 0), 4, 1),  # an array that begins anywhere
    ],
)
def test_a_single_elements_alignment_follows_from_strides_and_index(
    address: int, strides: tuple[int, ...], steps: tuple[int, ...], size: int, promised: int
) -> None:
    assert element_promise(address, strides, steps, size) == promised


@pytest.mark.parametrize("value", [1, 7, 512])
def test_the_stride_of_an_axis_with_one_place_passes_for_16_bytes(value: int) -> None:
    assert promise(Quantity.LONE_STRIDE, value, 2) == 8


def test_divisors_multiply_in_products_and_shrink_in_sums() -> None:
    block = Node("block", I32, attrs={"axis": 0})
    divisors = Divisors(Block(), lambda _node, _lane: 1)
    product = binary("mul", block, number(48))
    assert divisors.of(product, 0) == 48
    assert divisors.of(binary("add", product, number(32)), 0) == math.gcd(48, 32)
    assert divisors.of(binary("min", product, number(32)), 0) == 1
    assert divisors.of(binary("mul", block, number(0)), 0) == 0


def test_a_carried_value_keeps_what_its_start_and_its_steps_share() -> None:
    carried = Node("argument", I32)
    after = binary("add", carried, number(8))
    result = Node("result", I32)
    loop = Node("for", None, (number(0), number(9), number(1), number(64)), {"results": [result]})
    loop.body = Block(nodes=[after], arguments=[carried], results=[after])
    divisors = Divisors(Block(nodes=[loop]), lambda _node, _lane: 1)
    assert divisors.of(carried, 0) == 8
    assert divisors.of(result, 0) == 8


def test_the_launch_decides_about_extents() -> None:
    extent = Node("extent", I32, attrs={"array": "x", "axis": 0})
    assert Divisors(Block(), lambda _node, _lane: 16).of(extent, 0) == 16

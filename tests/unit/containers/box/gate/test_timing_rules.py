"""The pure parts of timing: order of calls, choice of configurations, sameness of outputs."""

import random
from collections import Counter

import pytest

from containers.box.gate.timing.configs import from_calls, from_perf_rows, spread
from containers.box.gate.timing.order import block_turns
from containers.box.gate.timing.same import Fingerprint, same


def fingerprint(values: list[float], dtype: str = "float16", special: int = 0) -> Fingerprint:
    vectors = [random.Random(seed) for seed in range(3)]
    dots = tuple(sum(v * source.gauss(0, 1) for v in values) for source in vectors)
    return Fingerprint(
        name="result 0",
        shape=(len(values),),
        dtype=dtype,
        dots=dots,
        squares=sum(v * v for v in values),
        special=special,
    )


def values(count: int, seed: int) -> list[float]:
    source = random.Random(1000 + seed)
    return [source.gauss(0, 1) for _ in range(count)]


def test_a_block_is_a_b_b_a_and_pairs_share_their_inputs() -> None:
    turns = list(block_turns(3, 2))
    assert [turn.first for turn in turns] == [True, True, False, False, False, False, True, True]
    assert [turn.last for turn in turns] == [False, True] * 4
    seeds = Counter(turn.seed for turn in turns)
    assert set(seeds.values()) == {2}
    for seed in seeds:
        assert {turn.first for turn in turns if turn.seed == seed} == {True, False}


def test_no_inputs_come_back_in_a_later_block() -> None:
    seeds = [{turn.seed for turn in block_turns(block, 2)} for block in range(40)]
    assert len(set().union(*seeds)) == sum(map(len, seeds))
    assert 0 not in set().union(*seeds)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("count", [16, 500, 4000])
def test_rounding_agrees_and_other_inputs_do_not(dtype: str, count: int) -> None:
    epsilon = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-10, "float8_e4m3fn": 2**-3}[dtype]
    noise = random.Random(5)
    for seed in range(4):
        exact = values(count, seed)
        rounded = [v * (1 + epsilon * noise.uniform(-1, 1)) for v in exact]
        assert same([fingerprint(exact, dtype)], [fingerprint(rounded, dtype)])
        rolled = exact[7:] + exact[:7]
        assert not same([fingerprint(exact, dtype)], [fingerprint(rolled, dtype)])


def test_zeros_scaled_and_missing_outputs_are_not_the_same() -> None:
    exact = values(1000, 1)
    reference = [fingerprint(exact)]
    assert not same(reference, [fingerprint([0.0] * 1000)])
    assert not same(reference, [fingerprint([1.1 * v for v in exact])])
    assert not same(reference, [])
    assert not same(reference, [fingerprint(exact, "float32")])
    assert not same(reference, [fingerprint(exact, special=1)])


def test_a_nan_in_a_fingerprint_agrees_with_nothing() -> None:
    exact = fingerprint(values(10, 1))
    broken = Fingerprint(
        name="result 0", shape=(10,), dtype="float16", dots=(float("nan"),) * 3, squares=exact.squares, special=0
    )
    assert not same([exact], [broken])


def test_coarse_inputs_widen_the_limit_of_a_fine_output() -> None:
    exact = values(1000, 1)
    noise = random.Random(5)
    coarse = [v * (1 + noise.gauss(0, 0.05)) for v in exact]
    reference, other = [fingerprint(exact, "float32")], [fingerprint(coarse, "float32")]
    assert not same(reference, other)
    assert same(reference, other, coarsest="float8_e4m3fn")


def test_integers_are_compared_to_the_last_one() -> None:
    numbers = [float(i) for i in range(100)]
    off = [*numbers[:50], 51.0, *numbers[51:]]
    assert same([fingerprint(numbers, "int64")], [fingerprint(numbers, "int64")])
    assert not same([fingerprint(numbers, "int64")], [fingerprint(off, "int64")])


def test_rows_are_taken_in_the_sources_order_and_what_is_missing_has_an_owner() -> None:
    chosen = from_perf_rows(["a", "b", "c", "d", "e"], ["e", "c"], 3)
    assert [config.key for config in chosen.configs] == ["c", "e"]
    assert [(config.key, of) for config, _, of in chosen.left_out] == [
        ("a", "target"),
        ("b", "settings"),
        ("d", "settings"),
    ]


def test_without_a_limit_all_rows_are_taken() -> None:
    assert [config.key for config in from_perf_rows(["a", "b"], ["b", "a"], None).configs] == ["a", "b"]


def test_the_largest_distinct_calls_are_taken() -> None:
    source = {
        "small": {"bytes": 1, "signature": "s"},
        "large": {"bytes": 9, "signature": "l"},
        "large again": {"bytes": 9, "signature": "l"},
        "not in target": {"bytes": 99, "signature": "n"},
        "middle": {"bytes": 5, "signature": "m"},
    }
    chosen = from_calls(source, ["small", "large", "large again", "middle"], 2)
    assert [config.key for config in chosen.configs] == ["large", "middle"]
    assert {config.origin for config in chosen.configs} == {"generated"}


@pytest.mark.parametrize(
    ("count", "most", "expected"), [(2, 3, (0, 1)), (9, 3, (0, 4, 8)), (5, 1, (0,)), (5, 0, ())]
)
def test_controls_are_spread(count: int, most: int, expected: tuple[int, ...]) -> None:
    assert spread(count, most) == expected

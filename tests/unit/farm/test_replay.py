"""Two measurements of one patch say the same, or what they say differently is named."""

from dataclasses import replace

from farm.gates import Ruling
from farm.measured.model import Measured
from farm.measured.ruling import rule
from farm.replay import compare
from tests.unit.farm.measured import builders


def measured(**changes: object) -> Measured:
    found = rule(builders.honest(), builders.SETTINGS)
    return replace(found, **changes)  # type: ignore[arg-type]


def test_the_same_rulings_and_overlapping_intervals_agree() -> None:
    assert compare(measured(), measured()) == ((), ())
    first = measured(low=0.99, ratio=1.0, high=1.01)
    assert compare(first, measured(low=1.01, ratio=1.02, high=1.03)).differences == ()


def test_intervals_that_lie_apart_are_a_difference_both_ways() -> None:
    slow, fast = measured(low=0.96, ratio=0.97, high=0.98), measured(low=0.99, ratio=1.0, high=1.01)
    for one, other in ((slow, fast), (fast, slow)):
        (said,) = compare(one, other).differences
        assert "0.970 [0.960, 0.980]" in said
        assert "do not overlap" in said


def test_a_gate_that_rules_otherwise_is_named_with_its_reason() -> None:
    gates = measured().gates
    other = (replace(gates[0], ruling=Ruling.FAIL, summary="25/26 rows"), *gates[1:])
    assert compare(measured(), measured(gates=other)).differences == (
        "correctness: pass in the evidence, now fail (25/26 rows)",
    )


def test_speeds_of_different_gpus_are_not_compared_and_rulings_are() -> None:
    gates = measured().gates
    other = measured(
        gpu="NVIDIA L4", low=0.5, ratio=0.5, high=0.5, gates=(*gates[:2], replace(gates[2], ruling=Ruling.FAIL))
    )
    found = compare(measured(), other)
    assert len(found.differences) == 1
    assert "NVIDIA L4" in found.notes[0]


def test_a_replay_without_speeds_says_so() -> None:
    assert compare(measured(), measured(low=None, ratio=None, high=None)).notes


def test_another_patch_is_no_replay() -> None:
    assert "another patch" in compare(measured(), measured(patch_sha256="0" * 64)).differences[0]

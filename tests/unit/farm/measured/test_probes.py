"""Probes: each fault is named with its probe and its worst element."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.gates import Ruling
from farm.measured.probes import fault, judge_probes
from farm.measured.records import Difference, ProbeKind
from tests.unit.farm.measured.builders import probe


@pytest.mark.parametrize("side", ["source_raised", "target_raised"])
def test_a_probe_that_was_not_run_leaves_the_gate_open(side: str) -> None:
    judged = judge_probes([probe(), probe(**{side: "not run: no time was left"})])
    (finding,) = judged.findings
    assert finding.ruling is Ruling.INFRA
    assert finding.reason.startswith("1 of 2 probes did not run: test_op[size=8], probe nan: not run: no time")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"target_raised": "RuntimeError: no"}, "raises RuntimeError: no where the source returns"),
        ({"unequal_facts": "stride (1, 8)"}, "results differ from the source's: stride (1, 8)"),
        ({"poisoned": 5}, "5 elements are not written"),
        ({"inputs_changed": ("x", "y")}, "changes its input x, y"),
        ({"unequal_special": 2}, "2 elements are NaN or infinite on one side only"),
        ({"target_repeats": False}, "does not repeat its bits"),
        ({"target_error_ulp": 2.1}, "error of 2.1 ulp, the source's is 0.5, 2 allowed"),
        ({"source_error_ulp": 4.0, "target_error_ulp": 6.1}, "6 allowed"),
        ({"target_error_ulp": math.nan}, "error of nan ulp"),
        ({"target_error_ulp": None}, "no error could be taken"),
        ({"source_error_ulp": None, "target_error_ulp": 2.5}, "no oracle for the source, 2 allowed"),
    ],
)
def test_a_fault_is_named(changes: dict[str, object], reason: str) -> None:
    worst = Difference(output=0, index=(3, 1), oracle=1.0, source=1.0, target=1.5)
    judged = judge_probes([probe(), probe(**changes, worst=worst)])
    (finding,) = judged.findings
    assert finding.ruling is Ruling.FAIL
    assert finding.reason.startswith("test_op[size=8], probe nan: ")
    assert reason in finding.reason
    assert finding.reason.endswith("(output 0[3, 1]: 1.5, the source's 1, exact 1)")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"target_error_ulp": 2.0},
        {"source_error_ulp": 4.0, "target_error_ulp": 6.0},
        {"source_repeats": False, "target_repeats": False},
        {"source_repeats": None, "target_repeats": None},
        {"source_error_ulp": None, "target_error_ulp": None},
        {"source_raised": "ValueError", "target_raised": "ValueError", "poisoned": 8},
    ],
)
def test_what_the_source_does_as_well_is_no_fault(changes: dict[str, object]) -> None:
    assert fault(probe(**changes)) is None


def test_without_an_oracle_the_target_is_held_to_the_source() -> None:
    alone = {"source_error_ulp": None, "target_error_ulp": None}
    assert fault(probe(**alone, distance_ulp=2.0)) is None
    assert fault(probe(**alone, distance_ulp=2.5)) == "error of 2.5 ulp, no oracle for the source, 2 allowed"


def test_the_sources_error_is_that_of_its_row_on_usual_inputs() -> None:
    seed = probe(kind=ProbeKind.SEED, name="as captured", source_error_ulp=8.0, target_error_ulp=9.0)
    edge = probe(kind=ProbeKind.EDGE, source_error_ulp=500.0, target_error_ulp=500.0)
    odd = probe(kind=ProbeKind.SHAPE, name="axis 8 -> 3", source_error_ulp=1.0, target_error_ulp=12.0)
    other = probe(key="test_other", kind=ProbeKind.SHAPE, source_error_ulp=1.0, target_error_ulp=12.0)
    assert judge_probes([seed, edge, odd]).findings == ()
    (finding,) = judge_probes([seed, edge, other]).findings
    assert finding.reason.startswith("test_other, probe ")
    assert judge_probes([seed, edge, probe(kind=ProbeKind.SHAPE, target_error_ulp=12.1)]).findings != ()


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_error_may_be_half_again_the_sources_or_two_ulp(source: float, target: float) -> None:
    wrong = fault(probe(source_error_ulp=source, target_error_ulp=target)) is not None
    assert wrong == (target > 2.0 and target > 1.5 * source)


def test_a_target_that_returns_where_the_source_raises_is_reported() -> None:
    judged = judge_probes([probe(), probe(source_raised="ValueError: odd", source_error_ulp=None)])
    assert (judged.findings, judged.spoke) == ((), 1)
    assert judged.flags[0].what == "the target returns where the source raises ValueError: odd"


def test_a_probe_without_an_oracle_is_reported() -> None:
    judged = judge_probes([probe(source_error_ulp=None, target_error_ulp=None)])
    assert "no error against an oracle" in judged.flags[0].what


@pytest.mark.parametrize("probes", [[], [probe(source_raised="x", target_raised="x")]])
def test_probes_that_say_nothing_are_no_proof(probes: list[object]) -> None:
    (finding,) = judge_probes(probes).findings
    assert finding.ruling is Ruling.INFRA

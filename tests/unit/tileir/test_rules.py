"""Every rule makes two texts equal that mean the same, is cited, and stops where the meaning changes."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from farm.tileir import RULES, RuleId, compare, parse
from tests.unit.tileir.kernel import HEAD, kernel, scalar, tile, value


class Case(NamedTuple):
    """A rule, two texts that it makes equal, and one that it must not."""

    rule: RuleId
    form: Callable[[str], str]
    reference: str
    candidate: str
    near: str  #: like the candidate, but different in meaning


def i32(name: str, number: int) -> str:
    return f"  %{name} = constant <i32: {number}> : tile<i32>\n"


LOAD = "load_ptr_tko weak %pb"
MASKED = "tile<8xptr<f32>>, tile<8xi1>"
MASK = i32("four", 4) + (
    "  %f1 = reshape %four : tile<i32> -> tile<1xi32>\n"
    "  %f8 = broadcast %f1 : tile<1xi32> -> tile<8xi32>\n"
    "  %mask = cmpi less_than %io, %f8, signed : tile<8xi32> -> tile<8xi1>\n"
)
ONES = "  %ones = constant <f32: 1.000000e+00> : tile<8xf32>\n"
TWO_LOADS = (
    "  %a, %ta = load_ptr_tko weak %pb token=%t : tile<8xptr<f32>> -> tile<8xf32>, token\n",
    "  %b, %tb = load_ptr_tko weak %qb token=%t : tile<8xptr<f32>> -> tile<8xf32>, token\n",
)
LOOP = i32("z", 0) + i32("one", 1)
LOOP_HEAD = "for %i in (%z to %n, step %one) : tile<i32> iter_values"
VIEW = "partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>"
TENSOR = (
    "  %nn = assume bounded<0, ?>, %n : tile<i32>\n"
    "  %tv = make_tensor_view %q, shape = [%nn], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>\n"
    f"  %pv = make_partition_view %tv : {VIEW}\n"
)
NONNEGATIVE = "  %nn = assume bounded<0, ?>, %n : tile<i32>\n"

CASES = (
    Case(
        RuleId.DATA_FLOW,
        scalar,
        i32("k", 3) + "  %a = addi %n, %k : tile<i32>\n  %v = muli %a, %m : tile<i32>",
        i32("dead", 9)
        + i32("k2", 3)
        + i32("k", 3)
        + "  %x = addi %n, %k2 : tile<i32>\n  %y = addi %n, %k : tile<i32>\n  %v = muli %y, %m : tile<i32>",
        i32("k", 4) + "  %a = addi %n, %k : tile<i32>\n  %v = muli %a, %m : tile<i32>",
    ),
    Case(
        RuleId.COMMUTE,
        scalar,
        "  %v = addi %n, %m : tile<i32>",
        "  %v = addi %m, %n : tile<i32>",
        "  %v = subi %m, %n : tile<i32>",
    ),
    Case(
        RuleId.ASSUME,
        scalar,
        "  %a = assume div_by<4>, %n : tile<i32>\n  %b = assume div_by<8>, %a : tile<i32>\n"
        "  %v = addi %b, %m : tile<i32>",
        "  %b = assume div_by<8>, %n : tile<i32>\n  %v = addi %b, %m : tile<i32>",
        "  %b = assume div_by<4>, %n : tile<i32>\n  %v = addi %b, %m : tile<i32>",
    ),
    Case(
        RuleId.HINT_TARGET,
        value,
        "  %v, %tv = load_ptr_tko weak %qb token=%t optimization_hints = <default = {latency = 2}> : "
        "tile<8xptr<f32>> -> tile<8xf32>, token",
        "  %v, %tv = load_ptr_tko weak %qb token=%t optimization_hints = <sm_90 = {latency = 2}> : "
        "tile<8xptr<f32>> -> tile<8xf32>, token",
        "  %v, %tv = load_ptr_tko weak %qb token=%t optimization_hints = <sm_90 = {latency = 3}> : "
        "tile<8xptr<f32>> -> tile<8xf32>, token",
    ),
    Case(
        RuleId.CONSTANT_FOLD,
        scalar,
        i32("v", 6),
        i32("a", 2) + i32("b", 3) + "  %v = muli %a, %b : tile<i32>",
        i32("a", 2) + i32("b", 3) + "  %v = addi %a, %b : tile<i32>",
    ),
    Case(
        RuleId.IDENTITY,
        scalar,
        "  %v = addi %n, %m : tile<i32>",
        i32("one", 1) + "  %x = muli %n, %one : tile<i32>\n  %v = addi %x, %m : tile<i32>",
        i32("one", 0) + "  %x = muli %n, %one : tile<i32>\n  %v = addi %x, %m : tile<i32>",
    ),
    Case(
        RuleId.ADD_CONSTANTS,
        scalar,
        i32("k", 63) + "  %v = addi %n, %k : tile<i32>",
        i32("k", 64) + i32("one", 1) + "  %x = addi %n, %k : tile<i32>\n  %v = subi %x, %one : tile<i32>",
        i32("k", 64) + i32("one", 2) + "  %x = addi %n, %k : tile<i32>\n  %v = subi %x, %one : tile<i32>",
    ),
    Case(
        RuleId.SPLAT,
        tile,
        "  %r = reshape %n : tile<i32> -> tile<1xi32>\n  %b = broadcast %r : tile<1xi32> -> tile<8xi32>\n"
        "  %v = addi %io, %b : tile<8xi32>",
        "  %r = reshape %n : tile<i32> -> tile<1x1xi32>\n  %b = broadcast %r : tile<1x1xi32> -> tile<2x4xi32>\n"
        "  %s = reshape %b : tile<2x4xi32> -> tile<8xi32>\n  %v = addi %io, %s : tile<8xi32>",
        "  %r = reshape %m : tile<i32> -> tile<1x1xi32>\n  %b = broadcast %r : tile<1x1xi32> -> tile<2x4xi32>\n"
        "  %s = reshape %b : tile<2x4xi32> -> tile<8xi32>\n  %v = addi %io, %s : tile<8xi32>",
    ),
    Case(
        RuleId.SPLAT_LIFT,
        tile,
        "  %x = muli %n, %m : tile<i32>\n  %r = reshape %x : tile<i32> -> tile<1xi32>\n"
        "  %b = broadcast %r : tile<1xi32> -> tile<8xi32>\n  %v = addi %io, %b : tile<8xi32>",
        "  %r = reshape %n : tile<i32> -> tile<1xi32>\n  %b = broadcast %r : tile<1xi32> -> tile<8xi32>\n"
        "  %s = reshape %m : tile<i32> -> tile<1xi32>\n  %d = broadcast %s : tile<1xi32> -> tile<8xi32>\n"
        "  %x = muli %b, %d : tile<8xi32>\n  %v = addi %io, %x : tile<8xi32>",
        "  %r = reshape %n : tile<i32> -> tile<1xi32>\n  %b = broadcast %r : tile<1xi32> -> tile<8xi32>\n"
        "  %x = muli %b, %io : tile<8xi32>\n  %v = addi %io, %x : tile<8xi32>",
    ),
    Case(
        RuleId.RESHAPE,
        tile,
        "  %v = addi %io, %io : tile<8xi32>",
        "  %r = reshape %io : tile<8xi32> -> tile<2x4xi32>\n  %s = reshape %r : tile<2x4xi32> -> tile<8xi32>\n"
        "  %v = addi %s, %io : tile<8xi32>",
        "  %r = reshape %io : tile<8xi32> -> tile<2x4xi32>\n"
        "  %w = permute %r [1, 0] : tile<2x4xi32> -> tile<4x2xi32>\n"
        "  %s = reshape %w : tile<4x2xi32> -> tile<8xi32>\n  %v = addi %s, %io : tile<8xi32>",
    ),
    Case(
        RuleId.COMPARE_FLIP,
        scalar,
        "  %x = cmpi less_than %n, %m, signed : tile<i32> -> tile<i1>\n"
        "  %v = select %x, %bx, %by : tile<i1>, tile<i32>",
        "  %x = cmpi greater_than %m, %n, signed : tile<i32> -> tile<i1>\n"
        "  %v = select %x, %bx, %by : tile<i1>, tile<i32>",
        "  %x = cmpi greater_than_or_equal %m, %n, signed : tile<i32> -> tile<i1>\n"
        "  %v = select %x, %bx, %by : tile<i1>, tile<i32>",
    ),
    Case(
        RuleId.SELECT,
        scalar,
        "  %v = addi %n, %m : tile<i32>",
        "  %x = select %c, %n, %n : tile<i1>, tile<i32>\n  %v = addi %x, %m : tile<i32>",
        "  %x = select %c, %n, %m : tile<i1>, tile<i32>\n  %v = addi %x, %m : tile<i32>",
    ),
    Case(
        RuleId.LOAD_PAD,
        value,
        MASK + ONES + f"  %v, %tv = {LOAD}, %mask, %ones token=%t : {MASKED}, tile<8xf32> -> tile<8xf32>, token",
        MASK + ONES + f"  %l, %tv = {LOAD}, %mask token=%t : {MASKED} -> tile<8xf32>, token\n"
        "  %v = select %mask, %l, %ones : tile<8xi1>, tile<8xf32>",
        MASK + ONES + f"  %l, %tv = {LOAD}, %mask token=%t : {MASKED} -> tile<8xf32>, token\n"
        "  %v = select %mask, %ones, %l : tile<8xi1>, tile<8xf32>",
    ),
    Case(
        RuleId.MASK_TRUE,
        value,
        "  %v, %tv = load_ptr_tko weak %pb token=%t : tile<8xptr<f32>> -> tile<8xf32>, token",
        "  %mask = constant <i1: true> : tile<8xi1>\n"
        + ONES
        + f"  %v, %tv = {LOAD}, %mask, %ones token=%t : {MASKED}, tile<8xf32> -> tile<8xf32>, token",
        "  %mask = constant <i1: false> : tile<8xi1>\n"
        + ONES
        + f"  %v, %tv = {LOAD}, %mask, %ones token=%t : {MASKED}, tile<8xf32> -> tile<8xf32>, token",
    ),
    Case(
        RuleId.IF_SELECT,
        scalar,
        "  %v = select %c, %n, %m : tile<i1>, tile<i32>",
        "  %v = if %c -> (tile<i32>) {\n    yield %n : tile<i32>\n  } else {\n    yield %m : tile<i32>\n  }",
        "  %v = if %c -> (tile<i32>) {\n    yield %m : tile<i32>\n  } else {\n    yield %n : tile<i32>\n  }",
    ),
    Case(
        RuleId.SELECT_MIN_MAX,
        scalar,
        "  %v = mini %n, %m signed : tile<i32>",
        "  %x = cmpi less_than %n, %m, signed : tile<i32> -> tile<i1>\n"
        "  %v = select %x, %n, %m : tile<i1>, tile<i32>",
        "  %x = cmpi less_than %n, %m, unsigned : tile<i32> -> tile<i1>\n"
        "  %v = select %x, %n, %m : tile<i1>, tile<i32>",
    ),
    Case(
        RuleId.IF_CONSTANT,
        value,
        TWO_LOADS[0] + "  %v = addf %a, %a : tile<8xf32>",
        "  %yes = constant <i1: true> : tile<i1>\n  %a = if %yes -> (tile<8xf32>) {\n"
        "  %x, %tx = load_ptr_tko weak %pb token=%t : tile<8xptr<f32>> -> tile<8xf32>, token\n"
        "    yield %x : tile<8xf32>\n  } else {\n    yield %zeros : tile<8xf32>\n  }\n"
        "  %v = addf %a, %a : tile<8xf32>",
        "  %yes = constant <i1: false> : tile<i1>\n  %a = if %yes -> (tile<8xf32>) {\n"
        "  %x, %tx = load_ptr_tko weak %pb token=%t : tile<8xptr<f32>> -> tile<8xf32>, token\n"
        "    yield %x : tile<8xf32>\n  } else {\n    yield %zeros : tile<8xf32>\n  }\n"
        "  %v = addf %a, %a : tile<8xf32>",
    ),
    Case(
        RuleId.CARRIED_UNCHANGED,
        scalar,
        LOOP + f"  %v = {LOOP_HEAD}(%x = %z) -> (tile<i32>) {{\n    %y = addi %x, %m : tile<i32>\n"
        "    continue %y : tile<i32>\n  }",
        LOOP + f"  %v, %u = {LOOP_HEAD}(%x = %z, %w = %m) -> (tile<i32>, tile<i32>) {{\n"
        "    %y = addi %x, %w : tile<i32>\n    continue %y, %w : tile<i32>, tile<i32>\n  }",
        LOOP + f"  %v, %u = {LOOP_HEAD}(%x = %z, %w = %m) -> (tile<i32>, tile<i32>) {{\n"
        "    %y = addi %x, %w : tile<i32>\n    continue %y, %x : tile<i32>, tile<i32>\n  }",
    ),
    Case(
        RuleId.CARRIED_ORDER,
        scalar,
        LOOP + f"  %f:2 = {LOOP_HEAD}(%x = %z, %w = %m) -> (tile<i32>, tile<i32>) {{\n"
        "    %y = addi %x, %w : tile<i32>\n    %u = muli %w, %n : tile<i32>\n"
        "    continue %y, %u : tile<i32>, tile<i32>\n  }\n  %v = subi %f#0, %f#1 : tile<i32>",
        LOOP + f"  %f:3 = {LOOP_HEAD}(%w = %m, %k = %z, %x = %z) -> (tile<i32>, tile<i32>, tile<i32>) {{\n"
        "    %y = addi %x, %w : tile<i32>\n    %u = muli %w, %n : tile<i32>\n    %kk = addi %k, %n : tile<i32>\n"
        "    continue %u, %kk, %y : tile<i32>, tile<i32>, tile<i32>\n  }\n  %v = subi %f#2, %f#0 : tile<i32>",
        LOOP + f"  %f:3 = {LOOP_HEAD}(%w = %m, %k = %z, %x = %z) -> (tile<i32>, tile<i32>, tile<i32>) {{\n"
        "    %y = addi %x, %w : tile<i32>\n    %u = muli %w, %n : tile<i32>\n    %kk = addi %k, %n : tile<i32>\n"
        "    continue %u, %kk, %y : tile<i32>, tile<i32>, tile<i32>\n  }\n  %v = subi %f#0, %f#2 : tile<i32>",
    ),
    Case(
        RuleId.FRESH_TOKEN,
        value,
        TWO_LOADS[0] + "  %v = addf %a, %a : tile<8xf32>",
        "  %a, %ta = load_ptr_tko weak %pb : tile<8xptr<f32>> -> tile<8xf32>, token\n"
        "  %v = addf %a, %a : tile<8xf32>",
        "  %b, %tb = load_ptr_tko weak %qb : tile<8xptr<f32>> -> tile<8xf32>, token\n"
        "  %v = addf %b, %b : tile<8xf32>",
    ),
    Case(
        RuleId.JOIN_TOKENS,
        kernel,
        "".join(TWO_LOADS) + "  %j = join_tokens %ta, %tb : token\n"
        "  %s = store_ptr_tko weak %pb, %zeros token=%j : tile<8xptr<f32>>, tile<8xf32> -> token",
        "".join(TWO_LOADS) + "  %i = join_tokens %tb, %t : token\n  %j = join_tokens %i, %ta, %tb : token\n"
        "  %s = store_ptr_tko weak %pb, %zeros token=%j : tile<8xptr<f32>>, tile<8xf32> -> token",
        "".join(TWO_LOADS) + "  %j = join_tokens %tb, %t : token\n"
        "  %s = store_ptr_tko weak %pb, %zeros token=%j : tile<8xptr<f32>>, tile<8xf32> -> token",
    ),
    Case(
        RuleId.LOAD_ORDER,
        value,
        TWO_LOADS[0] + TWO_LOADS[1] + "  %v = subf %a, %b : tile<8xf32>",
        TWO_LOADS[1] + TWO_LOADS[0] + "  %v = subf %a, %b : tile<8xf32>",
        TWO_LOADS[1] + TWO_LOADS[0] + "  %v = subf %b, %a : tile<8xf32>",
    ),
    Case(
        RuleId.INDEX_BOUND,
        scalar,
        "  %v = addi %bx, %n : tile<i32>",
        "  %b = assume bounded<0, ?>, %bx : tile<i32>\n  %v = addi %b, %n : tile<i32>",
        "  %b = assume bounded<1, ?>, %bx : tile<i32>\n  %v = addi %b, %n : tile<i32>",
    ),
    Case(
        RuleId.INDEX_SPACE,
        scalar,
        TENSOR + f"  %v = get_index_space_shape %pv : {VIEW} -> tile<i32>",
        TENSOR + i32("k", 16) + "  %v = divi %nn, %k signed rounding<positive_inf> : tile<i32>",
        TENSOR + i32("k", 16) + "  %v = divi %nn, %k signed rounding<negative_inf> : tile<i32>",
    ),
    Case(
        RuleId.CEIL_DIVISION,
        scalar,
        NONNEGATIVE + i32("k", 16) + "  %v = divi %nn, %k signed rounding<positive_inf> : tile<i32>",
        NONNEGATIVE
        + i32("k", 16)
        + i32("k15", 15)
        + "  %x = addi %nn, %k15 : tile<i32>\n  %v = divi %x, %k signed : tile<i32>",
        NONNEGATIVE
        + i32("k", 16)
        + i32("k15", 14)
        + "  %x = addi %nn, %k15 : tile<i32>\n  %v = divi %x, %k signed : tile<i32>",
    ),
    Case(
        RuleId.FLOOR_DIVISION,
        scalar,
        NONNEGATIVE + i32("k", 16) + "  %v = divi %nn, %k signed rounding<negative_inf> : tile<i32>",
        NONNEGATIVE + i32("k", 16) + "  %v = divi %nn, %k signed : tile<i32>",
        NONNEGATIVE + i32("k", 16) + "  %v = divi %nn, %k signed rounding<positive_inf> : tile<i32>",
    ),
    Case(
        RuleId.FLOOR_MODULO,
        scalar,
        i32("k", 16) + i32("z", 0) + "  %r = remi %bx, %k signed : tile<i32>\n"
        "  %l = cmpi less_than %r, %z, signed : tile<i32> -> tile<i1>\n  %s = addi %r, %k : tile<i32>\n"
        "  %v = select %l, %s, %r : tile<i1>, tile<i32>",
        i32("k", 16) + "  %v = remi %bx, %k signed : tile<i32>",
        i32("k", 16) + "  %v = remi %n, %k signed : tile<i32>",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.value)
def test_a_rule_makes_two_texts_equal_and_is_cited(case: Case) -> None:
    result = compare(parse(case.form(case.reference)), parse(case.form(case.candidate)))
    assert result.same, result.difference
    assert case.rule.value in result.rules
    assert result.assumes_values == any(RULES[RuleId(rule)].assumes_values for rule in result.rules)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.rule is not RuleId.HINT_TARGET],  # the candidate's targets count
    ids=lambda case: case.rule.value,
)
def test_a_rule_works_both_ways_round(case: Case) -> None:
    assert compare(parse(case.form(case.candidate)), parse(case.form(case.reference))).same


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.value)
def test_a_rule_stops_where_the_meaning_changes(case: Case) -> None:
    result = compare(parse(case.form(case.reference)), parse(case.form(case.near)))
    assert not result.same
    assert result.difference is not None


def test_every_rule_has_a_case_and_a_reason() -> None:
    assert {case.rule for case in CASES} | {RuleId.KNOWN_VALUE} == set(RuleId)
    assert set(RULES) == set(RuleId)
    assert all(rule.why.endswith(".") for rule in RULES.values())


def test_a_known_value_makes_a_constant_and_a_parameter_equal() -> None:
    constant = parse(scalar(i32("k", 7) + "  %v = addi %n, %k : tile<i32>"))
    parameter = parse(scalar("  %v = addi %n, %m : tile<i32>"))
    assert not compare(constant, parameter).same
    assert not compare(constant, parameter, known_candidate={3: 8}).same
    known = compare(constant, parameter, known_candidate={3: 7})
    assert known.same
    assert RuleId.KNOWN_VALUE.value in known.rules
    assert known.parameters[3] is None


def test_a_division_by_a_parameter_stays_in_its_branch() -> None:
    inside = (
        "  if %c {\n    %d = divi %n, %m signed : tile<i32>\n"
        "    %o = offset %p, %d : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
        "    %s = store_ptr_tko weak %o, %zero token=%t : tile<ptr<f32>>, tile<f32> -> token\n  }\n"
    )
    outside = "  %d = divi %n, %m signed : tile<i32>\n" + inside.replace(
        "    %d = divi %n, %m signed : tile<i32>\n", ""
    )
    result = compare(parse(kernel(inside)), parse(kernel(outside)))
    assert not result.same
    constant = (i32("k", 3) + text.replace("%n, %m", "%n, %k") for text in (inside, outside))
    assert compare(*(parse(kernel(text)) for text in constant)).same


def test_kernels_begin_alike() -> None:
    assert kernel("").startswith(HEAD)

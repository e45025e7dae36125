"""The rules that the comparison may use, each with the reason why it keeps the meaning."""

from dataclasses import dataclass
from enum import StrEnum


class RuleId(StrEnum):
    """What a certificate cites."""

    DATA_FLOW = "data-flow"  #: names, order, copies and leftovers of pure operations do not matter
    COMMUTE = "commute"  #: operands of a commutative operation changed places
    ASSUME = "assume-facts"  #: assume operations compared as facts
    HINT_TARGET = "hint-target"  #: hints compared as they hold on the candidate's target
    CONSTANT_FOLD = "constant-fold"  #: an operation on constants is its value
    IDENTITY = "identity-operand"  #: x + 0, x * 1 and their like
    ADD_CONSTANTS = "add-constants"  #: two constants added one after the other
    SPLAT = "splat"  #: reshaped and broadcast scalars and constants
    SPLAT_LIFT = "splat-lift"  #: an elementwise operation on equal elements
    RESHAPE = "reshape-chain"  #: reshape or broadcast that does nothing, or twice
    COMPARE_FLIP = "compare-flip"  #: a > b written as b < a
    SELECT = "select-known"  #: a selection that has one outcome
    LOAD_PAD = "load-pad"  #: padding written as a selection after the load
    MASK_TRUE = "mask-true"  #: a mask that is true everywhere
    IF_SELECT = "if-select"  #: a branch without effects written as a selection
    SELECT_MIN_MAX = "select-min-max"  #: minimum or maximum written as comparison and selection
    IF_CONSTANT = "if-constant"  #: a branch on a constant
    CARRIED_UNCHANGED = "carried-unchanged"  #: a carried value that no iteration changes
    CARRIED_ORDER = "carried-order"  #: order and leftovers of carried values
    FRESH_TOKEN = "fresh-token"  #: no token and a fresh token
    JOIN_TOKENS = "join-tokens"  #: joined tokens are a set
    LOAD_ORDER = "load-order"  #: weak loads that no token orders
    KNOWN_VALUE = "known-value"  #: a parameter whose value the caller gave
    INDEX_BOUND = "index-bound"  #: block and loop indices are not negative
    INDEX_SPACE = "index-space"  #: extent of a view's index space
    CEIL_DIVISION = "ceil-division"  #: (x + c - 1) / c
    FLOOR_DIVISION = "floor-division"  #: rounding of a division that is not negative
    FLOOR_MODULO = "floor-modulo"  #: sign correction of a remainder that is not negative


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule and why it may be used."""

    id: RuleId
    why: str  #: one sentence
    assumes_values: bool = False  #: needs facts about values that hold for every index computation


def _rule(id_: RuleId, why: str, assumes_values: bool = False) -> Rule:
    return Rule(id=id_, why=why, assumes_values=assumes_values)


RULES: dict[RuleId, Rule] = {
    rule.id: rule
    for rule in (
        _rule(
            RuleId.DATA_FLOW,
            "An operation without effects is fully described by its operands, so its name, place, copies "
            "and an unused result change nothing; a division stays in its region unless its divisor is a "
            "constant.",
        ),
        _rule(RuleId.COMMUTE, "The operation gives the same result with these operands exchanged."),
        _rule(
            RuleId.ASSUME,
            "An assume passes its operand through; what it promises is collected for the quantity and both "
            "sides must promise the same.",
        ),
        _rule(
            RuleId.HINT_TARGET,
            "Hints under a target's name hold on that target only and take precedence over the default, so "
            "both sides are compared as they hold on the targets that the candidate names.",
        ),
        _rule(
            RuleId.CONSTANT_FOLD,
            "Integer arithmetic modulo the width, sign changes and exact conversions of constants have one value.",
        ),
        _rule(
            RuleId.IDENTITY,
            "Integer operations with a neutral or absorbing operand, and an offset of zero, have a known result.",
        ),
        _rule(
            RuleId.ADD_CONSTANTS,
            "Integer addition without overflow promises is associative modulo the width.",
        ),
        _rule(RuleId.SPLAT, "A reshaped or broadcast tile of one element holds that element everywhere."),
        _rule(
            RuleId.SPLAT_LIFT,
            "An elementwise operation on tiles whose elements are all equal gives a tile whose elements are "
            "all equal to the operation on one of them.",
        ),
        _rule(
            RuleId.RESHAPE,
            "Reshapes keep the order of elements, broadcasts repeat them; to the same shape they do nothing "
            "and two in a row are one.",
        ),
        _rule(RuleId.COMPARE_FLIP, "a > b is b < a and a >= b is b <= a, for integers and ordered floats alike."),
        _rule(
            RuleId.SELECT,
            "A selection by a constant, or between two equal values, or by a condition already decided "
            "outside, is the selected value.",
        ),
        _rule(
            RuleId.LOAD_PAD,
            "Elements that the mask excludes are not read and hold the padding, which is a selection by the mask.",
        ),
        _rule(RuleId.MASK_TRUE, "A mask that is true everywhere excludes nothing, so no padding is ever seen."),
        _rule(
            RuleId.IF_SELECT,
            "A branch that does nothing but yield values which are safe to compute yields the selected value.",
        ),
        _rule(RuleId.SELECT_MIN_MAX, "The smaller of two integers is the first if it is less, else the second."),
        _rule(RuleId.IF_CONSTANT, "Of a branch on a constant only one side is ever executed."),
        _rule(
            RuleId.CARRIED_UNCHANGED,
            "A carried value that every iteration passes on as it got it equals its initial value.",
        ),
        _rule(
            RuleId.CARRIED_ORDER,
            "Carried values are told apart by their initial and next values, not by position; one that "
            "nothing reads has no meaning.",
        ),
        _rule(RuleId.FRESH_TOKEN, "A fresh token orders nothing, which is what no token means."),
        _rule(
            RuleId.JOIN_TOKENS,
            "A joined token waits for all its operands, in whatever order, however often and however nested "
            "they are named, and a fresh token adds nothing.",
        ),
        _rule(
            RuleId.LOAD_ORDER,
            "Token-ordered operations are not bound to program order, so neighbouring weak loads that take "
            "their tokens from elsewhere may be written in either order.",
        ),
        _rule(RuleId.KNOWN_VALUE, "The caller states that every launch passes this value."),
        _rule(
            RuleId.INDEX_BOUND,
            "Block indices and grid sizes are not negative, nor is the index of a signed loop that starts "
            "at such a value and counts up by a positive constant.",
        ),
        _rule(
            RuleId.INDEX_SPACE,
            "A view's index space has ceil(extent / tile) places in a dimension; extents are not negative "
            "and index arithmetic does not overflow.",
            True,
        ),
        _rule(
            RuleId.CEIL_DIVISION,
            "For x not negative, c positive and no overflow, (x + c - 1) / c rounded to zero is x / c rounded up.",
            True,
        ),
        _rule(
            RuleId.FLOOR_DIVISION,
            "For x not negative and c positive, rounding to zero and rounding down are the same.",
            True,
        ),
        _rule(
            RuleId.FLOOR_MODULO,
            "The remainder of x not negative by c positive is not negative, so its sign needs no correction.",
            True,
        ),
    )
}

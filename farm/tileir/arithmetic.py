"""Rewrites of arithmetic: constants, neutral operands, comparisons, selections, index computations."""

from typing import TYPE_CHECKING

from farm.tileir import index_rules
from farm.tileir.constants import Number, compare, fold_integer, integer, of_float, to_float, width, wrap
from farm.tileir.graph import Node, Origin
from farm.tileir.rules import RuleId
from farm.tileir.types import Type

if TYPE_CHECKING:
    from farm.tileir.simplify import Simplifier

_FLIPPED = {"greater_than": "less_than", "greater_than_or_equal": "less_than_or_equal"}
_SIGN_BITS = {"f16": 15, "bf16": 15, "f32": 31, "f64": 63}
#: op -> integer operand 1 that changes nothing; commutative ones are tried both ways round.
_NEUTRAL = {
    "addi": 0,
    "subi": 0,
    "muli": 1,
    "ori": 0,
    "xori": 0,
    "andi": -1,
    "shli": 0,
    "shri": 0,
    "divi": 1,
    "offset": 0,
}
_ABSORBING = {"muli": 0, "andi": 0, "ori": -1}
_IDEMPOTENT = frozenset({"andi", "ori", "mini", "maxi"})
_BOTH_WAYS = frozenset({"addi", "muli", "ori", "xori", "andi"})


def number_of(node: Node) -> Number | None:
    """The constant that a tile holds everywhere; None if it is not one."""
    if node.op == "splat":
        node = node.operands[0]
    return Number(*node.attrs) if node.op == "constant" and len(node.attrs) == 2 else None  # type: ignore[arg-type]


def integer_of(node: Node) -> int | None:
    """The signed integer constant that a tile holds everywhere; None if it is not one."""
    number = number_of(node)
    if number is None or width(number.element) is None or not isinstance(number.value, int):
        return None
    return number.value


def rewrite(
    s: "Simplifier", op: str, attrs: tuple[str, ...], operands: tuple[Node, ...], type_: Type, origin: Origin
) -> Node | None:
    """What an operation is equal to by one of the rules; None if nothing simpler is known."""
    values = [integer_of(node) for node in operands]
    found = _folded(s, op, attrs, operands, values, type_, origin)
    if found is None and len(operands) == 2:
        found = _neutral(s, op, operands, values, type_, origin)
    if found is None and op in ("addi", "subi") and not attrs:
        found = _added(s, op, operands, values, type_, origin)
    if found is None and op in ("cmpi", "cmpf") and attrs and attrs[0] in _FLIPPED:
        s.note(RuleId.COMPARE_FLIP)
        flipped = (_FLIPPED[attrs[0]], *attrs[1:])
        found = s.make(op, flipped, (operands[1], operands[0]), type_, origin)
    if found is None and op == "select":
        found = selected(s, operands[0], operands[1], operands[2], type_, origin)
    if found is None:
        found = index_rules.rewrite(s, op, attrs, operands, values, type_, origin)
    return found


def _folded(
    s: "Simplifier",
    op: str,
    attrs: tuple[str, ...],
    operands: tuple[Node, ...],
    values: list[int | None],
    type_: Type,
    origin: Origin,
) -> Node | None:
    numbers = [number_of(node) for node in operands]
    known = [number for number in numbers if number is not None]
    if not operands or len(known) != len(operands):
        return None
    integers = [value for value in values if value is not None]
    if len(integers) != len(operands):
        result = _folded_float(op, attrs, known[0], type_.element) if len(known) == 1 else None
    else:
        result = _folded_integer(op, attrs, operands[0].type.element, integers, type_.element)
    if result is None:
        return None
    s.note(RuleId.CONSTANT_FOLD)
    return s.constant(result, type_, origin)


def _folded_integer(
    op: str, attrs: tuple[str, ...], element: str, values: list[int], result: str
) -> Number | None:
    bits = width(element)
    if bits is None:
        return None
    unsigned = "unsigned" in attrs
    if op == "cmpi" and len(attrs) == 2:
        left, right = ((value & ((1 << bits) - 1)) if unsigned else value for value in values)
        outcome = compare(attrs[0], left, right)
        return None if outcome is None else integer(result, int(outcome))
    if op == "exti" and attrs in (("signed",), ("unsigned",)):
        return integer(result, values[0] & ((1 << bits) - 1) if unsigned else values[0])
    if op == "trunci" and not attrs:
        return integer(result, values[0])
    if op == "itof" and attrs == ("signed",):
        number = of_float(result, float(values[0])) if abs(values[0]) < 1 << 53 else None
        return number if result != "bf16" or (number and to_float(number) == values[0]) else None
    folded = fold_integer(op, attrs, element, values)
    return None if folded is None else integer(result, folded)


def _folded_float(op: str, attrs: tuple[str, ...], number: Number, result: str) -> Number | None:
    value = to_float(number)
    if attrs or value is None:
        return None
    if op == "negf" and isinstance(number.value, int):
        return Number(result, number.value ^ (1 << _SIGN_BITS[number.element]))
    if op == "ftof":
        return of_float(result, value)
    return None


def _neutral(
    s: "Simplifier",
    op: str,
    operands: tuple[Node, ...],
    values: list[int | None],
    type_: Type,
    origin: Origin,
) -> Node | None:
    orders = [(0, 1), (1, 0)] if op in _BOTH_WAYS else [(0, 1)]
    found: Node | None = None
    for kept, other in orders:
        value = values[other]
        if value is None:
            continue
        if _NEUTRAL.get(op) == value:
            found = operands[kept]
        elif _ABSORBING.get(op) == value:
            found = s.constant(integer(type_.element, value), type_, origin)
    if found is None and op in _IDEMPOTENT and operands[0] is operands[1]:
        found = operands[0]
    if found is not None:
        s.note(RuleId.IDENTITY)
    return found


def _added(
    s: "Simplifier",
    op: str,
    operands: tuple[Node, ...],
    values: list[int | None],
    type_: Type,
    origin: Origin,
) -> Node | None:
    left, right = operands
    constant = values[1]
    if constant is None and op == "addi" and values[0] is not None:
        left, constant = right, values[0]
    bits = width(type_.element)
    if constant is None or bits is None:
        return None
    constant = wrap(-constant if op == "subi" else constant, bits)
    inner = [integer_of(node) for node in left.operands]
    if left.op == "addi" and not left.attrs and inner[1] is not None:
        s.note(RuleId.ADD_CONSTANTS)
        left, constant = left.operands[0], wrap(constant + inner[1], bits)
    elif op == "addi" and right is not left and values[1] is not None:
        return None
    if constant == 0:
        return left
    if op == "subi":
        s.note(RuleId.ADD_CONSTANTS)
    number = s.constant(integer(type_.element, constant), type_, origin)
    return s.graph.pure("addi", (), (left, number), type_, origin)


def selected(
    s: "Simplifier", condition: Node, then: Node, other: Node, type_: Type, origin: Origin
) -> Node | None:
    """What a selection is equal to; None if it stays one."""
    outcome = integer_of(condition)
    if outcome is not None or then is other:
        s.note(RuleId.SELECT)
        return then if outcome else other
    if then.op == "select" and then.operands[0] is condition:
        s.note(RuleId.SELECT)
        return s.make("select", (), (condition, then.operands[1], other), type_, origin)
    if other.op == "select" and other.operands[0] is condition:
        s.note(RuleId.SELECT)
        return s.make("select", (), (condition, then, other.operands[2]), type_, origin)
    if condition.op == "cmpi" and condition.attrs[0] in ("less_than", "less_than_or_equal"):
        signedness = tuple(str(attr) for attr in condition.attrs[1:])
        for op, pair in (("mini", (then, other)), ("maxi", (other, then))):
            if condition.operands == pair:
                s.note(RuleId.SELECT_MIN_MAX)
                return s.make(op, signedness, pair, type_, origin)
    return None

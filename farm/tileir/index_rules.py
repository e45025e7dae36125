"""Rewrites that hold for index computations: extents and indices are not negative and do not overflow."""

from typing import TYPE_CHECKING

from farm.tileir import arithmetic
from farm.tileir.constants import integer
from farm.tileir.graph import Loop, Node, Origin
from farm.tileir.rules import RuleId
from farm.tileir.types import Type, tensor_shape, view_dim_map, view_tile

if TYPE_CHECKING:
    from farm.tileir.simplify import Simplifier

_CEIL = ("signed", "rounding<positive_inf>")
_FLOOR = ("signed", "rounding<negative_inf>")
_TRUNCATE = ("signed",)
_INDICES = frozenset({"get_tile_block_id", "get_num_tile_blocks", "get_index_space_shape", "get_tensor_shape"})
#: Not negative when all operands are not.
_KEEPS_SIGN = frozenset({"addi", "muli", "divi", "mini", "splat", "reshape", "broadcast"})


def rewrite(
    s: "Simplifier",
    op: str,
    attrs: tuple[str, ...],
    operands: tuple[Node, ...],
    values: list[int | None],
    type_: Type,
    origin: Origin,
) -> Node | None:
    """What an index computation is equal to; None below the index level."""
    if s.level < 2:
        return None
    if op == "divi":
        return _divided(s, attrs, operands, values[1], type_, origin)
    if op == "cmpi" and attrs == ("less_than", "signed") and values[1] == 0 and nonnegative(s, operands[0]):
        s.note(RuleId.FLOOR_MODULO)
        return s.constant(integer("i1", 0), type_, origin)
    if op == "result" and operands[0].op == "get_index_space_shape":
        return _index_space(s, operands[0].operands[0], int(attrs[0]), type_, origin)
    return None


def _divided(
    s: "Simplifier",
    attrs: tuple[str, ...],
    operands: tuple[Node, ...],
    divisor: int | None,
    type_: Type,
    origin: Origin,
) -> Node | None:
    if divisor is None or divisor <= 0 or attrs not in (_FLOOR, _TRUNCATE):
        return None
    dividend = operands[0]
    added = arithmetic.integer_of(dividend.operands[1]) if dividend.op == "addi" and not dividend.attrs else None
    if added == divisor - 1 and nonnegative(s, dividend.operands[0]):
        s.note(RuleId.CEIL_DIVISION)
        return s.make("divi", _CEIL, (dividend.operands[0], operands[1]), type_, origin)
    if attrs == _FLOOR and nonnegative(s, dividend):
        s.note(RuleId.FLOOR_DIVISION)
        return s.make("divi", _TRUNCATE, operands, type_, origin)
    return None


def _index_space(s: "Simplifier", view: Node, place: int, type_: Type, origin: Origin) -> Node | None:
    if view.op != "make_partition_view" or view.operands[0].op != "make_tensor_view":
        return None
    tile, shape = view_tile(view.type), tensor_shape(view.type)
    if tile is None or shape is None or place >= len(tile):
        return None
    dim_map = view_dim_map(view.type)
    dim = dim_map[place] if dim_map else place
    extent = shape[dim]
    if extent is not None:
        s.note(RuleId.INDEX_SPACE)
        return s.constant(integer(type_.element, -(-extent // tile[place])), type_, origin)
    tensor = view.operands[0]
    dynamic = tensor.operands[1 + sum(known is None for known in shape[:dim])]
    if dynamic.type != type_:
        return None
    s.note(RuleId.INDEX_SPACE)
    divisor = s.constant(integer(type_.element, tile[place]), type_, origin)
    return s.make("divi", _CEIL, (dynamic, divisor), type_, origin)


def nonnegative(s: "Simplifier", node: Node) -> bool:
    """Whether an index computation cannot be negative, by what the IR states and what indices are."""
    if node.id in s.nonnegative:
        return True
    value = arithmetic.integer_of(node)
    if value is not None:
        known = value >= 0
    elif node.op == "result":
        known = node.operands[0].op in _INDICES
    elif node.op == "index":
        known = counts_up(s, node)
    elif node.op in ("iota", *_INDICES):
        known = True
    elif node.op == "maxi" and "signed" in node.attrs:
        known = any(nonnegative(s, operand) for operand in node.operands)
    elif node.op in ("remi", "exti"):
        known = "signed" in node.attrs and nonnegative(s, node.operands[0])
    else:
        known = node.op in _KEEPS_SIGN and all(nonnegative(s, operand) for operand in node.operands)
    if known:
        s.nonnegative.add(node.id)
    return known


def counts_up(s: "Simplifier", index: Node) -> bool:
    """Whether a loop's index starts at a value that is not negative and grows by a positive constant."""
    loop = index.operands[0]
    if not isinstance(loop, Loop) or "unsigned" in loop.attrs:
        return False
    step = arithmetic.integer_of(loop.operands[2])
    steps_up = (step is not None and step > 0) or _is_grid(loop.operands[2])
    return steps_up and nonnegative(s, loop.operands[0])


def _is_grid(node: Node) -> bool:
    return node.op == "result" and node.operands[0].op == "get_num_tile_blocks"

"""Operands of memory operations: which is the mask, what padding means, what no token means."""

from typing import NamedTuple

from farm.tileir.arithmetic import integer_of
from farm.tileir.graph import Node, Role
from farm.tileir.rules import RuleId
from farm.tileir.simplify import Simplifier

#: Roles of plain operands, in order; a mask is an operand of i1 after the required ones.
_PLAIN = {
    "load_ptr_tko": (Role.POINTER, Role.MASK, Role.PADDING),
    "store_ptr_tko": (Role.POINTER, Role.VALUE, Role.MASK),
    "load_view_tko": (Role.OPERAND,),
    "store_view_tko": (Role.VALUE, Role.OPERAND),
    "atomic_rmw_tko": (Role.POINTER, Role.VALUE, Role.MASK),
    "atomic_cas_tko": (Role.POINTER, Role.OPERAND, Role.VALUE, Role.MASK),
}


class PaddedLoad(NamedTuple):
    """A load without its padding, and what to select with."""

    operands: tuple[Node, ...]
    roles: tuple[Role, ...]
    mask: Node | None
    padding: Node | None


def memory_roles(op: str, operands: tuple[Node, ...], roles: tuple[Role, ...]) -> tuple[Role, ...]:
    """Roles with those that follow from the position in a memory operation."""
    plain = iter(_PLAIN.get(op, ()))
    return tuple(next(plain, role) if role is Role.OPERAND else role for role in roles)


def with_token(
    s: Simplifier, operands: tuple[Node, ...], roles: tuple[Role, ...]
) -> tuple[tuple[Node, ...], tuple[Role, ...]]:
    """Operands without a token that orders nothing."""
    kept = [
        (node, role)
        for node, role in zip(operands, roles, strict=True)
        if not (role is Role.TOKEN and node.op == "make_token")
    ]
    if len(kept) != len(operands):
        s.note(RuleId.FRESH_TOKEN)
    return tuple(node for node, _ in kept), tuple(role for _, role in kept)


def padded_load(s: Simplifier, operands: tuple[Node, ...], roles: tuple[Role, ...]) -> PaddedLoad:
    """A load's operands without padding, and without a mask that is true everywhere."""
    by_role = dict(zip(roles, operands, strict=True))
    mask = by_role.get(Role.MASK)
    dropped = {Role.PADDING}
    if mask is not None and integer_of(mask) == -1:
        s.note(RuleId.MASK_TRUE)
        dropped.add(Role.MASK)
        mask = None
    kept = [(node, role) for node, role in zip(operands, roles, strict=True) if role not in dropped]
    padding = by_role.get(Role.PADDING)
    return PaddedLoad(tuple(node for node, _ in kept), tuple(role for _, role in kept), mask, padding)

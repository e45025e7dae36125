"""A mismatch to a difference that a person can act on: its kind as seen from the access it reaches."""

from collections.abc import Iterator

from farm.tileir.difference import Difference, DifferenceKind, Place
from farm.tileir.graph import Node, Role
from farm.tileir.matcher import Matcher
from farm.tileir.pairs import Mismatch, Pair
from farm.tileir.span import Span

_VAGUE = frozenset({DifferenceKind.DATA_FLOW, DifferenceKind.OPERATION, DifferenceKind.CONSTANT})
_INDEXING = frozenset({Role.INDEX, Role.SHAPE, Role.STRIDE})
#: Kinds that say little about what was written.
VAGUE = _VAGUE | {
    DifferenceKind.COMBINER,
    DifferenceKind.MASK,
    DifferenceKind.LOOP_BOUND,
    DifferenceKind.CARRIED_VALUE,
}
_NEAR = {
    Role.BOUND: DifferenceKind.LOOP_BOUND,
    Role.INIT: DifferenceKind.CARRIED_VALUE,
    Role.NEXT: DifferenceKind.CARRIED_VALUE,
    Role.TOKEN: DifferenceKind.TOKEN_ORDER,
    Role.PADDING: DifferenceKind.PADDING,
    Role.COMBINER: DifferenceKind.COMBINER,
}
_FAR = {
    Role.MASK: DifferenceKind.MASK,
    Role.PADDING: DifferenceKind.PADDING,
    Role.TOKEN: DifferenceKind.TOKEN_ORDER,
    Role.BOUND: DifferenceKind.LOOP_BOUND,
}


def explain(found: Mismatch, matcher: Matcher) -> Difference:
    """The difference that a mismatch is."""
    kind, sentence = found.kind, found.sentence
    reference, candidate = found.reference, found.candidate
    if kind in _VAGUE and found.pair is not None:
        exchanged = _exchanged(found.pair, matcher)
        if exchanged is not None:
            role = exchanged.role
            parent = exchanged.parent
            assert parent is not None
            kind = DifferenceKind.INDEX_ORDER if role in _INDEXING else DifferenceKind.OPERAND_ORDER
            sentence = f"`{parent.reference.op}` takes the same operands in another order."
            reference, candidate = parent.reference, parent.candidate
            asked = (reference.origin.predicate, candidate.origin.predicate)
            if asked[0] != asked[1]:
                kind = DifferenceKind.PREDICATE
                sentence = f"`{reference.op}` asks `{asked[0]}`, in the candidate `{asked[1]}`."
        else:
            if kind is DifferenceKind.OPERATION and matcher.occurs(found.pair):
                kind = DifferenceKind.DATA_FLOW
            kind = _seen_from_access(kind, found.pair)
            if found.pair.role is not None and found.pair.parent is not None:
                sentence += f" It is the {found.pair.role} of `{found.pair.parent.reference.op}`."
    return Difference(kind=kind, reference=_place(reference), candidate=_place(candidate), sentence=sentence)


def access(found: Mismatch) -> Span | None:
    """Where in the reference the access stands whose meaning a mismatch concerns."""
    last: Pair | None = None
    for step in _chain(found.pair) if found.pair is not None else ():
        last = step
    return last.reference.origin.span if last is not None else None


def _chain(pair: Pair) -> Iterator[Pair]:
    current: Pair | None = pair
    while current is not None:
        yield current
        current = current.parent


def _exchanged(pair: Pair, matcher: Matcher) -> Pair | None:
    for step in _chain(pair):
        if step.parent is None or step.role is None or step.role in (Role.INIT, Role.NEXT):
            return None
        ours, theirs = matcher.colours_of(step.parent)
        if ours != theirs and sorted(ours) == sorted(theirs):
            return step
    return None


def _seen_from_access(kind: DifferenceKind, pair: Pair) -> DifferenceKind:
    near = pair
    while near.parent is not None and near.parent.reference.op == near.parent.candidate.op == "splat":
        near = near.parent
    if near.role in _NEAR:
        return _NEAR[near.role]
    if kind is DifferenceKind.DATA_FLOW:
        return next((_FAR[step.role] for step in _chain(pair) if step.role in _FAR), kind)
    if any(step.role is Role.COMBINER for step in _chain(pair)):
        return DifferenceKind.COMBINER
    return DifferenceKind.MASK if near.role is Role.MASK else kind


def _place(node: Node | None) -> Place | None:
    if node is None:
        return None
    return Place(operation=node.origin.name, span=node.origin.span, source=node.origin.source)

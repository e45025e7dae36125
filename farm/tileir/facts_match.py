"""Whether both sides promise the same about the quantities that were matched."""

from farm.tileir.difference import Difference, DifferenceKind, Place
from farm.tileir.graph import Node, Region
from farm.tileir.local import describe
from farm.tileir.lower import Lowering
from farm.tileir.matcher import Matcher

_Promises = dict[Region | None, frozenset[str]]


def facts_differ(matcher: Matcher, reference: Lowering, candidate: Lowering) -> Difference | None:
    """The first matched quantity about which the sides promise different things; None if there is none."""
    ours, theirs = reference.facts.normal(reference.s), candidate.facts.normal(candidate.s)
    for pair in matcher.related.values():
        left, right = ours.get(pair.reference.id, {}), theirs.get(pair.candidate.id, {})
        if left == right == {}:
            continue
        if not _equal(left, right, matcher):
            return _difference(pair.reference, pair.candidate, left, right)
    return None


def _equal(left: _Promises, right: _Promises, matcher: Matcher) -> bool:
    unmatched = dict(right)
    for guard, promises in left.items():
        same = next((other for other in unmatched if _same_guard(guard, other, matcher)), guard)
        if unmatched.pop(same, frozenset()) != promises:
            return False
    return not any(unmatched.values())


def _same_guard(ours: Region | None, theirs: Region | None, matcher: Matcher) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if ours.owner is None or theirs.owner is None or ours.branch != theirs.branch:
        return False
    return (ours.owner.id, theirs.owner.id) in matcher.related


def _difference(reference: Node, candidate: Node, left: _Promises, right: _Promises) -> Difference:
    sentence = f"About {describe(reference)} the reference promises {_said(left)}, the candidate {_said(right)}."
    places = tuple(
        Place(operation=node.origin.name, span=node.origin.span, source=node.origin.source)
        for node in (reference, candidate)
    )
    return Difference(kind=DifferenceKind.FACT, reference=places[0], candidate=places[1], sentence=sentence)


def _said(promises: _Promises) -> str:
    said = [
        f"`{promise}`" + (" (conditionally)" if guard is not None else "")
        for guard, found in promises.items()
        for promise in sorted(found)
    ]
    return ", ".join(said) or "nothing"

"""What assume operations promise, for each quantity, in a form that can be compared."""

import math
import re
from typing import NamedTuple

from farm.tileir import arithmetic
from farm.tileir.graph import Node, Region
from farm.tileir.index_rules import counts_up
from farm.tileir.rules import RuleId
from farm.tileir.simplify import Simplifier

_DIVISIBLE = re.compile(r"div_by<(\d+)>$")
_BOUNDED = re.compile(r"bounded<(-?\d+|\?), (-?\d+|\?)>$")


class Fact(NamedTuple):
    """A promise about a quantity."""

    node: Node
    guard: Region | None  #: where it is made, if that is not executed whenever the quantity exists
    predicate: str  #: e.g. `div_by<16>`


class Facts:
    """The promises of one side, in the order met."""

    def __init__(self) -> None:
        self._all: list[Fact] = []

    def add(self, s: Simplifier, node: Node, predicate: str, region: Region) -> None:
        """A promise about a node, made in a region."""
        if node.op == "splat" and (_DIVISIBLE.match(predicate) or _BOUNDED.match(predicate)):
            node = node.operands[0]
        guard = None if region is node.home else region
        self._all.append(Fact(node, guard, predicate))
        bounded = _BOUNDED.match(predicate)
        if guard is None and bounded and bounded.group(1) not in ("?",) and int(bounded.group(1)) >= 0:
            s.nonnegative.add(node.id)

    def mark(self) -> int:
        """A point to return to."""
        return len(self._all)

    def reset(self, mark: int) -> None:
        """Forget what was promised since a point."""
        del self._all[mark:]

    def normal(self, s: Simplifier) -> dict[int, dict[Region | None, frozenset[str]]]:
        """Promises by node id and guard; what holds anyway and what another promise implies is left out."""
        grouped: dict[int, dict[Region | None, set[str]]] = {}
        for fact in self._all:
            if not _holds_anyway(s, fact):
                grouped.setdefault(fact.node.id, {}).setdefault(fact.guard, set()).add(fact.predicate)
        found: dict[int, dict[Region | None, frozenset[str]]] = {}
        for node_id, by_guard in grouped.items():
            always = by_guard.get(None, set())
            merged = {
                guard: _merged(predicates if guard is None else predicates | always)
                for guard, predicates in by_guard.items()
            }
            found[node_id] = {
                guard: predicates
                for guard, predicates in merged.items()
                if guard is None or predicates != merged.get(None)
            }
        return found


def _merged(predicates: set[str]) -> frozenset[str]:
    divisor = 1
    lower: int | None = None
    upper: int | None = None
    rest: set[str] = set()
    for predicate in predicates:
        if found := _DIVISIBLE.match(predicate):
            divisor = math.lcm(divisor, int(found.group(1)))
        elif found := _BOUNDED.match(predicate):
            low, high = (None if bound == "?" else int(bound) for bound in found.groups())
            lower = low if lower is None else lower if low is None else max(lower, low)
            upper = high if upper is None else upper if high is None else min(upper, high)
        else:
            rest.add(predicate)
    if divisor > 1:
        rest.add(f"div_by<{divisor}>")
    if lower is not None or upper is not None:
        rest.add(f"bounded<{'?' if lower is None else lower}, {'?' if upper is None else upper}>")
    return frozenset(rest)


def _holds_anyway(s: Simplifier, fact: Fact) -> bool:
    bounded = _BOUNDED.match(fact.predicate)
    divisible = _DIVISIBLE.match(fact.predicate)
    value = arithmetic.integer_of(fact.node)
    if value is not None and divisible:
        return value % int(divisible.group(1)) == 0
    if bounded is None:
        return False
    low, high = (None if bound == "?" else int(bound) for bound in bounded.groups())
    if value is not None:
        return (low is None or low <= value) and (high is None or value <= high)
    if low is None:
        return high is None
    if low <= 0 and high is None and _is_index(s, fact.node):
        s.note(RuleId.INDEX_BOUND)
        return True
    return False


def _is_index(s: Simplifier, node: Node) -> bool:
    if node.op == "result":
        return node.operands[0].op in ("get_tile_block_id", "get_num_tile_blocks")
    return node.op == "index" and counts_up(s, node)

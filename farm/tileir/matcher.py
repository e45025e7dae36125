"""Matches two data flows: which nodes mean the same, and the first pair that does not.

A pair is taken to mean the same until one of the things it depends on does not. Loops make this circular:
carried values are equal when their initial values are and when their next values are, given that they are
equal (induction over the iterations). Parameters have nothing to depend on; each of the candidate's stands
for one of the reference's throughout.
"""

from collections.abc import Iterable
from typing import NamedTuple

from farm.tileir.arithmetic import integer_of
from farm.tileir.colours import colour_nodes, listed_effects, parameter_colours
from farm.tileir.difference import DifferenceKind
from farm.tileir.effects import in_order, lengths_differ
from farm.tileir.graph import Branch, Loop, Node, Region, Role
from farm.tileir.local import attributes_differ, hints_differ, local_mismatch, parameters_differ
from farm.tileir.lower import Lowering
from farm.tileir.ops import PARTIAL, commutes
from farm.tileir.pairs import Mismatch, Pair, mismatch
from farm.tileir.rules import RuleId
from farm.tileir.simplify import Level

_MAX_RETRIES = 500
_CARRIED = frozenset({"arg", "loop_result"})


class _Choice(NamedTuple):
    """A state to return to, and the pairs to try there instead."""

    pending: list[Pair | Mismatch]
    trail: int
    hints: int
    instead: list[Pair]


class Matcher:
    """One attempt to match a candidate with its reference."""

    def __init__(self, reference: Lowering, candidate: Lowering, *, by_position: bool) -> None:
        self.by_position = by_position
        self.rules: set[RuleId] = set()
        self.parameters: dict[int, int] = {}  #: candidate's parameter index to reference's
        self.related: dict[tuple[int, ...], Pair] = {}
        self._sides = (reference, candidate)
        self._colours = self._coloured(by_position)
        self._coarse: tuple[list[int], ...] | None = None
        self._listed = tuple({node.id for node in listed_effects(side.graph.top)} for side in self._sides)
        self._effects: dict[tuple[int, int], int] = {}  # (side, effect id) -> the other side's effect id
        self._trail: list[tuple[str, tuple[int, ...] | int]] = []
        self._pending: list[Pair | Mismatch] = []
        self._choices: list[_Choice] = []
        self._hints: list[Mismatch] = []  # reported when nothing else differs

    def _coloured(self, by_position: bool) -> tuple[list[int], ...]:
        if by_position:
            return tuple(colour_nodes(side, lambda index: index) for side in self._sides)
        found: list[list[int]] = []
        for side in self._sides:
            uses = parameter_colours(side)
            found.append(colour_nodes(side, uses.__getitem__))
        return tuple(found)

    def colours_of(self, pair: Pair) -> tuple[list[int], list[int]]:
        """Structural hashes of both sides' operands."""
        return (
            [self._colours[0][node.id] for node in pair.reference.operands],
            [self._colours[1][node.id] for node in pair.candidate.operands],
        )

    def occurs(self, pair: Pair) -> bool:
        """Whether what the candidate has here occurs elsewhere in the reference."""
        return self._colours[1][pair.candidate.id] in self._colours[0]

    def run(self) -> Mismatch | None:
        """None if everything that the reference does the candidate does and the other way round."""
        reference, candidate = self._sides
        self._listing(reference.graph.top, candidate.graph.top, None)
        first: Mismatch | None = None
        for _ in range(_MAX_RETRIES):
            found = self._drain()
            if found is None:
                return self._hints[0] if self._hints else None
            first = first or found
            if not self._choices:
                break
            self._retreat()
        return first

    def _drain(self) -> Mismatch | None:
        while self._pending:
            item = self._pending.pop()
            found = item if isinstance(item, Mismatch) else self._match(item)
            if found is not None:
                return found
        return None

    def _retreat(self) -> None:
        choice = self._choices.pop()
        del self._hints[choice.hints :]
        while len(self._trail) > choice.trail:
            kind, key = self._trail.pop()
            if kind == "parameter":
                assert isinstance(key, int)
                del self.parameters[key]
            elif kind == "effect":
                assert isinstance(key, tuple)
                del self._effects[key[0], key[1]]
            else:
                assert isinstance(key, tuple)
                del self.related[key]
        self._pending = [*choice.pending, *choice.instead]

    def _match(self, pair: Pair) -> Mismatch | None:
        a, b = pair.reference, pair.candidate
        if a.op in _CARRIED and a.op == b.op:
            return self._carried(pair)
        key = (a.id, b.id)
        if key in self.related:
            return None
        if a.op == b.op == "param":
            return self._parameter(pair)
        found = local_mismatch(pair) or self._paired_effect(pair)
        if found is not None:
            return found
        self._relate(key, pair)
        if a.hints != b.hints:
            self._hints.append(hints_differ(pair))
        if a.op in PARTIAL and integer_of(a.operands[-1]) in (None, 0, -1):
            found = self._same_region(a.home, b.home, pair)
            if found is not None:
                return found
        if isinstance(a, Loop) and isinstance(b, Loop):
            return self._loop(a, b, pair)
        if isinstance(a, Branch) and isinstance(b, Branch):
            self._branch(a, b, pair)
            return None
        if a.op == "if_result":
            return self._if_result(pair)
        if a.op not in ("continue", "break"):
            self._operands(pair)
        return None

    def _relate(self, key: tuple[int, ...], pair: Pair) -> None:
        self.related[key] = pair
        self._trail.append(("node", key))

    def _push(self, children: Iterable[tuple[Node, Node, Role | None]], parent: Pair | None) -> None:
        pairs = [Pair(a, b, role, parent) for a, b, role in children]
        self._pending += reversed(pairs)

    def _parameter(self, pair: Pair) -> Mismatch | None:
        ours, theirs = (int(str(node.attrs[0])) for node in (pair.reference, pair.candidate))
        bound = theirs if self.by_position else self.parameters.get(theirs, ours)
        if pair.reference.type != pair.candidate.type or bound != ours:
            return parameters_differ(pair, bound)
        if theirs not in self.parameters:
            self.parameters[theirs] = ours
            self._trail.append(("parameter", theirs))
        self._relate((pair.reference.id, pair.candidate.id), pair)
        return None

    def _paired_effect(self, pair: Pair) -> Mismatch | None:
        a, b = pair.reference, pair.candidate
        listed = (a.id in self._listed[0], b.id in self._listed[1])
        if not any(listed):
            return None
        if (
            not all(listed)
            or self._effects.get((0, a.id), b.id) != b.id
            or self._effects.get((1, b.id), a.id) != a.id
        ):
            return mismatch(DifferenceKind.DATA_FLOW, pair, f"These two `{a.op}` are not the same access.")
        for side, here, there in ((0, a.id, b.id), (1, b.id, a.id)):
            if (side, here) not in self._effects:
                self._effects[side, here] = there
                self._trail.append(("effect", (side, here)))
        return None

    def _operands(self, pair: Pair) -> None:
        a, b = pair.reference, pair.candidate
        children: list[tuple[Node, Node, Role | None]] = list(zip(a.operands, b.operands, a.roles, strict=True))
        ours, theirs = self.colours_of(pair)
        if a.op == "join_tokens":
            left, right = (
                [
                    node
                    for _, _, node in sorted(
                        (colour, node.id, node) for colour, node in zip(cs, n.operands, strict=True)
                    )
                ]
                for cs, n in ((ours, a), (theirs, b))
            )
            children = [(x, y, Role.TOKEN) for x, y in zip(left, right, strict=True)]
        elif commutes(a.op, a.attrs) and len(children) > 1:
            children = self._exchangeable(pair, children, ours, theirs)
        self._push(children, pair)

    def _exchangeable(
        self,
        pair: Pair,
        straight: list[tuple[Node, Node, Role | None]],
        ours: list[int],
        theirs: list[int],
    ) -> list[tuple[Node, Node, Role | None]]:
        (a0, b0, role), (a1, b1, _), *rest = straight
        crossed: list[tuple[Node, Node, Role | None]] = [(a0, b1, role), (a1, b0, role), *rest]
        along = (ours[0] == theirs[0]) + (ours[1] == theirs[1])
        across = (ours[0] == theirs[1]) + (ours[1] == theirs[0])
        if along == across:
            if self._coarse is None:
                self._coarse = tuple(colour_nodes(side, lambda _: 0) for side in self._sides)
            coarse = self._coarse
            along += (coarse[0][a0.id] == coarse[1][b0.id]) + (coarse[0][a1.id] == coarse[1][b1.id])
            across += (coarse[0][a0.id] == coarse[1][b1.id]) + (coarse[0][a1.id] == coarse[1][b0.id])
        if along == across and a0 is not a1 and b0 is not b1:
            instead = [Pair(a, b, r, pair) for a, b, r in reversed(crossed)]
            self._choices.append(_Choice(self._pending.copy(), len(self._trail), len(self._hints), instead))
            self.rules.add(RuleId.COMMUTE)
        if across > along:
            self.rules.add(RuleId.COMMUTE)
            return crossed
        return straight

    def _same_region(self, ours: Region, theirs: Region, pair: Pair) -> Mismatch | None:
        if ours.owner is None and theirs.owner is None:
            return None
        if ours.owner is None or theirs.owner is None or ours.branch != theirs.branch:
            sentence = "This division is executed under other conditions, and it is undefined for a zero divisor."
            return mismatch(DifferenceKind.EFFECT, pair, sentence)
        self._push([(ours.owner, theirs.owner, None)], pair)
        return None

    def _loop(self, a: Loop, b: Loop, pair: Pair) -> Mismatch | None:
        if len(a.continues) != len(b.continues) or len(a.breaks) != len(b.breaks):
            return mismatch(DifferenceKind.EFFECT, pair, "The loops end their iterations in different places.")
        if len(a.args) != len(b.args):
            self.rules.add(RuleId.CARRIED_ORDER)
        self._listing(a.body, b.body, pair)
        self._operands(pair)
        return None

    def _branch(self, a: Branch, b: Branch, pair: Pair) -> None:
        for ours, theirs in reversed(list(zip(a.bodies, b.bodies, strict=True))):
            self._listing(ours, theirs, pair)
        self._operands(pair)

    def _carried(self, pair: Pair) -> Mismatch | None:
        a, b = pair.reference, pair.candidate
        ours, theirs = a.operands[0], b.operands[0]
        at, to = int(str(a.attrs[0])), int(str(b.attrs[0]))
        assert isinstance(ours, Loop)
        assert isinstance(theirs, Loop)
        if a.type != b.type or ours.op != theirs.op:
            return attributes_differ(pair)
        leaves = a.op == "loop_result" and ours.op == "loop"
        key = (ours.id, at, theirs.id, to, int(leaves))
        if key in self.related:
            return None
        self._relate(key, pair)
        if at != to:
            self.rules.add(RuleId.CARRIED_ORDER)
        children: list[tuple[Node, Node, Role | None]] = [(ours, theirs, None)]
        if leaves:
            children += [
                (x.operands[at], y.operands[to], Role.RESULT)
                for x, y in zip(ours.breaks, theirs.breaks, strict=False)
            ]
        else:
            children.append((ours.inits[at], theirs.inits[to], Role.INIT))
            children += [
                (x.operands[at], y.operands[to], Role.NEXT)
                for x, y in zip(ours.continues, theirs.continues, strict=False)
            ]
        self._push(children, pair)
        return None

    def _if_result(self, pair: Pair) -> Mismatch | None:
        ours, theirs = pair.reference.operands[0], pair.candidate.operands[0]
        at, to = int(str(pair.reference.attrs[0])), int(str(pair.candidate.attrs[0]))
        assert isinstance(ours, Branch)
        assert isinstance(theirs, Branch)
        children: list[tuple[Node, Node, Role | None]] = [(ours, theirs, None)]
        for x, y in zip(ours.yields, theirs.yields, strict=True):
            if (x is None) != (y is None):
                return mismatch(DifferenceKind.EFFECT, pair, "One side leaves this branch early.")
            if x is not None and y is not None:
                children.append((x[at], y[to], Role.RESULT))
        self._push(children, pair)
        return None

    def _listing(self, ours: Region, theirs: Region, parent: Pair | None) -> None:
        left, right = ours.effects, theirs.effects
        if self._sides[0].level >= Level.MEANING:
            ordered = in_order(left, right, self._colours)
            if ordered != right:
                self.rules.add(RuleId.LOAD_ORDER)
            right = ordered
        if len(left) != len(right):
            self._pending.append(lengths_differ(left, right, parent))
        self._push(((a, b, None) for a, b in zip(left, right, strict=False)), parent)

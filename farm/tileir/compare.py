"""Whether a candidate's entry does, may do and promises the same as its reference."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from farm.errors import TileIRError
from farm.tileir.difference import Difference, DifferenceKind, Place
from farm.tileir.explain import VAGUE, access, explain
from farm.tileir.facts_match import facts_differ
from farm.tileir.forms import Forms
from farm.tileir.hints import compared_targets
from farm.tileir.identical import identical
from farm.tileir.lower import Lowering, param_types
from farm.tileir.matcher import Matcher
from farm.tileir.model import Entry, Module
from farm.tileir.rules import RULES, RuleId
from farm.tileir.simplify import Level
from farm.tileir.span import Span


class ParameterMapping(StrEnum):
    """How the candidate's parameters correspond to the reference's."""

    AUTO = "auto"  #: by position if symbol and parameter types are equal, else by use
    POSITION = "position"  #: the candidate takes what the reference takes, in the same order
    USE = "use"  #: a parameter corresponds to the one that is used in its place


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome of a comparison, and what it rests on."""

    same: bool
    rules: tuple[str, ...]  #: ids of the rules used (`RULES`); none: identical but for names
    difference: Difference | None  #: the first one; None if same
    parameters: tuple[int | None, ...]  #: candidate's parameter to reference's index; None: unused

    @property
    def assumes_values(self) -> bool:
        """Whether it rests on facts about index values that the IR does not state."""
        return any(RULES[RuleId(rule)].assumes_values for rule in self.rules)


def compare(
    reference: Module,
    candidate: Module,
    *,
    gpu: str | None = None,
    mapping: ParameterMapping = ParameterMapping.AUTO,
    known_reference: Mapping[int, int] | None = None,
    known_candidate: Mapping[int, int] | None = None,
) -> Comparison:
    """Compare two modules of one entry each.

    `gpu` (e.g. `sm_90`) is the target whose hints count; without it all targets that the candidate names.
    `known_*` give integer parameters (index to value) that every launch passes so; they are treated as
    constants and have no counterpart in `parameters`.
    Raises TileIRError where a module is not sound: an unknown name, a wrong number of entries.
    """
    ours, theirs = _only_entry(reference), _only_entry(candidate)
    knowns = (dict(known_reference or {}), dict(known_candidate or {}))
    by_position = _by_position(ours, theirs, mapping)
    if (
        by_position
        and knowns[0] == knowns[1]
        and identical(ours, theirs)
        and reference.globals == candidate.globals
    ):
        return Comparison(same=True, rules=(), difference=None, parameters=tuple(range(len(theirs.params))))
    targets = (gpu,) if gpu else compared_targets(reference, candidate)
    attempts: list[_Attempt] = []
    forms = Forms()
    for level in Level:
        sides = (
            Lowering(ours, level=level, targets=targets, forms=forms, known=knowns[0]),
            Lowering(theirs, level=level, targets=targets, forms=forms, known=knowns[1]),
        )
        attempts.append(_at_level(sides[0], sides[1], by_position))
        if attempts[-1].result.same:
            if reference.globals != candidate.globals:
                return _globals_differ(reference, candidate, attempts[-1].result)
            break
    return _most_telling(attempts)


class _Attempt(NamedTuple):
    """The outcome at one level."""

    result: Comparison
    access: Span | None  #: where in the reference the access stands that the difference concerns


def _at_level(reference: Lowering, candidate: Lowering, by_position: bool) -> _Attempt:
    matcher = Matcher(reference, candidate, by_position=by_position)
    found = matcher.run()
    difference = explain(found, matcher) if found is not None else facts_differ(matcher, reference, candidate)
    if difference is None and reference.hints != candidate.hints:
        difference = _hints_differ(reference, candidate)
    used = {RuleId.DATA_FLOW} | matcher.rules | reference.s.rules | candidate.s.rules
    count = len(candidate.entry.params)
    result = Comparison(
        same=difference is None,
        rules=tuple(rule.value for rule in RuleId if rule in used),
        difference=difference,
        parameters=tuple(matcher.parameters.get(index) for index in range(count)),
    )
    return _Attempt(result, access(found) if found is not None else None)


def _most_telling(attempts: list[_Attempt]) -> Comparison:
    """The last outcome; of a difference that rewriting has blurred, the form before rewriting."""
    last = attempts[-1]
    difference = last.result.difference
    if difference is None or difference.kind not in VAGUE:
        return last.result
    for attempt in reversed(attempts[:-1]):
        earlier = attempt.result.difference
        if earlier is not None and earlier.kind not in VAGUE and attempt.access == last.access is not None:
            return attempt.result
    return last.result


def _only_entry(module: Module) -> Entry:
    if len(module.entries) != 1:
        raise TileIRError(f"the module has {len(module.entries)} entries; compare modules of one entry each")
    return module.entries[0]


def _by_position(reference: Entry, candidate: Entry, mapping: ParameterMapping) -> bool:
    if mapping is ParameterMapping.AUTO:
        return reference.symbol == candidate.symbol and param_types(reference) == param_types(candidate)
    return mapping is ParameterMapping.POSITION


def _hints_differ(reference: Lowering, candidate: Lowering) -> Difference:
    places = tuple(
        Place(operation="entry", span=side.entry.span, source=side.entry.source) for side in (reference, candidate)
    )
    sentence = f"The entry has the hints {{{reference.hints}}}, in the candidate {{{candidate.hints}}}."
    return Difference(kind=DifferenceKind.HINT, reference=places[0], candidate=places[1], sentence=sentence)


def _globals_differ(reference: Module, candidate: Module, result: Comparison) -> Comparison:
    sentence = f"The modules define other globals: {len(reference.globals)} and {len(candidate.globals)}."
    difference = Difference(kind=DifferenceKind.CONSTANT, reference=None, candidate=None, sentence=sentence)
    return Comparison(same=False, rules=result.rules, difference=difference, parameters=result.parameters)

"""Which probes are made of the captured calls, within a budget."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from containers.box.gate.probes.calls import Call
from containers.box.gate.probes.cases import Case
from containers.box.gate.probes.shapes import empties, shapes, strided
from containers.box.gate.probes.values import edges, seeds
from farm.measured.records import ProbeKind

#: Probes of one call before the rest of its kind; a call with integers among its tensors gets fewer shapes,
#: since indices that point nowhere take the source's process down.
SHAPES_WITH_INTEGERS = 6


def base_case(call: Call) -> Case:
    """The call as it was made."""
    return Case(kind=ProbeKind.SEED, name="as captured", call=call)


def plan(calls: Sequence[Call], budget: int) -> list[Case]:
    """At most `budget` cases: of each call the captured one, then calls and kinds in turn.

    The lists of kinds start at another place for each call, so that calls alike in type try different things.
    """
    turns = [iter(_in_turn(call, i)) for i, call in enumerate(calls)]
    cases = [base_case(call) for call in calls[:budget]]
    while turns and len(cases) < budget:
        for turn in list(turns):
            case = next(turn, None)
            if case is None:
                turns.remove(turn)
            elif len(cases) < budget:
                cases.append(case)
    return cases


def _in_turn(call: Call, position: int) -> Iterator[Case]:
    integers = any(not slot.data.is_floating_point() for slot in call.slots)
    of_shape = list(islice(shapes(call), SHAPES_WITH_INTEGERS if integers else 40))
    kinds = [
        _rotated(list(seeds(call)), position),
        _rotated(list(chain(edges(call), empties(call))), 3 * position),
        _rotated(of_shape, 3 * position),
        _rotated(list(strided(call)), 2 * position),
    ]
    while any(kinds):
        for cases in kinds:
            if cases:
                yield cases.pop(0)


def _rotated(cases: list[Case], by: int) -> list[Case]:
    at = by % len(cases) if cases else 0
    return cases[at:] + cases[:at]

"""Which probes are made of the captured calls, within a budget."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, islice

from containers.box.gate.probes.calls import Call
from containers.box.gate.probes.cases import Case
from containers.box.gate.probes.shapes import empties, shapes, strided
from containers.box.gate.probes.values import edges, seeds
from farm.measured.records import ProbeKind

#: Probes of one call before the rest of its kind; a call with integers among its tensors gets fewer shapes,
#: since indices that point nowhere take the source's process down.
SHAPES_WITH_INTEGERS = 6
#: What the first case of a shape costs more than another, in cases: on an H200 it compiles for a second or two.
COMPILATION = 8


def base_case(call: Call) -> Case:
    """The call as it was made."""
    return Case(kind=ProbeKind.SEED, name="as captured", call=call)


def plan(calls: Sequence[Call], budget: int) -> list[Case]:
    """At most `budget` cases: the captured calls, each with one variant, then calls and kinds in turn.

    Time may run out after any of them: calls begin with different kinds, so that the first four variants are of
    four kinds. The lists of kinds start at another place for each call, so that calls alike in type try different
    things.
    """
    turns = [iter(_in_turn(call, i)) for i, call in enumerate(calls)]
    cases: list[Case] = []
    for call, turn in zip(calls, turns, strict=True):
        cases += [base_case(call), *islice(turn, 1 if 2 * len(calls) <= budget else 0)]
    del cases[budget:]
    while turns and len(cases) < budget:
        for turn in list(turns):
            case = next(turn, None)
            if case is None:
                turns.remove(turn)
            elif len(cases) < budget:
                cases.append(case)
    return cases


def shares(cases: Sequence[Case], workers: int) -> list[list[int]]:
    """Numbers of the cases for each of at most `workers` workers, each share in planned order and not empty.

    Cases of one function with tensors of equal shapes and types stay together: their kernels are compiled once.
    The largest groups are given out first, each to the worker with the least until then.
    """
    groups: dict[Hashable, list[int]] = {}
    for number, case in enumerate(cases):
        tensors = tuple((tuple(slot.data.shape), slot.data.dtype) for slot in case.call.slots)
        groups.setdefault((case.call.name, tensors), []).append(number)
    given: list[list[int]] = [[] for _ in range(max(workers, 1))]
    weights = [0] * len(given)
    for group in sorted(groups.values(), key=lambda numbers: (-len(numbers), numbers[0])):
        least = weights.index(min(weights))
        given[least] += group
        weights[least] += COMPILATION + len(group)
    return [sorted(numbers) for numbers in given if numbers]


def _in_turn(call: Call, position: int) -> Iterator[Case]:
    integers = any(not slot.data.is_floating_point() for slot in call.slots)
    of_shape = list(islice(shapes(call), SHAPES_WITH_INTEGERS if integers else 40))
    kinds = [
        _rotated(list(seeds(call)), position),
        _rotated(list(chain(edges(call), empties(call))), 3 * position),
        _rotated(of_shape, 3 * position),
        _rotated(list(strided(call)), 2 * position),
    ]
    kinds = kinds[position % 4 :] + kinds[: position % 4]
    while any(kinds):
        for cases in kinds:
            if cases:
                yield cases.pop(0)


def _rotated(cases: list[Case], by: int) -> list[Case]:
    at = by % len(cases) if cases else 0
    return cases[at:] + cases[:at]

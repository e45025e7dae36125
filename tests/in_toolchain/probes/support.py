"""Calls and candidates for the tests of the probes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from containers.box.gate.probes.attempt import attempt
from containers.box.gate.probes.calls import Call, Slot, Slots, encode
from containers.box.gate.probes.cases import Case
from containers.box.gate.probes.compare import Attempt, from_saved, probe
from containers.box.gate.probes.oracle import Reference, exact
from farm.measured.probes import judge_probes
from farm.measured.records import Probe

CPU = torch.device("cpu")


def call_of(name: str, *args: Any, backward: bool = False, **kwargs: Any) -> Call:
    """A call as the plugin would have captured it."""
    slots = Slots()
    encoded = {"@": "tuple", "items": [encode(arg, slots, f"x{i}") for i, arg in enumerate(args)]}
    named = encode(kwargs, slots, "")
    made = tuple(
        Slot(
            name=label,
            data=tensor.detach().contiguous().clone(),
            strides=tuple(tensor.stride()),
            wants_grad=tensor.requires_grad,
        )
        for label, tensor in zip(slots.names, slots.tensors, strict=True)
    )
    return Call(
        key="tests/t.py::test_op[]",
        position=0,
        name=name,
        factory=None,
        args=encoded,
        kwargs=named,
        slots=made,
        backward=backward,
    )


def tried(function: Callable[..., Any], case: Case) -> Attempt:
    """Both attempts of one side, here."""
    return from_saved(attempt(function, case, CPU))


@dataclass(frozen=True, kw_only=True)
class Known:
    """A case with the source's and the exact results."""

    case: Case
    source: Attempt
    oracle: dict[str, torch.Tensor]

    def record(self, target: Callable[..., Any]) -> Probe:
        """The record for a target, without processes."""
        return probe("s", self.case, self.source, tried(target, self.case), self.oracle)


def known_of(case: Case, source: Callable[..., Any], reference: Callable[..., Any] | None) -> Known:
    """The case with what the source gives for it, and the reference in float64."""
    theirs = tried(source, case)
    oracle: dict[str, torch.Tensor] = {}
    if reference is not None and theirs.raised is None:
        places = [(result.place, result.tensor.dtype) for result in theirs.results]
        how = Reference(function=reference, args=case.call.args, kwargs=case.call.kwargs)
        oracle = exact(how, case, CPU, places)
    return Known(case=case, source=theirs, oracle=oracle)


def probed(
    case: Case,
    source: Callable[..., Any],
    target: Callable[..., Any],
    reference: Callable[..., Any] | None = None,
) -> Probe:
    """The record of one case; without processes."""
    return known_of(case, source, reference).record(target)


def failing(records: Iterable[Probe]) -> list[str]:
    """What the correctness gate says against the records."""
    return [finding.reason for finding in judge_probes(records).findings]

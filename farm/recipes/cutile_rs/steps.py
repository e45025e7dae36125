"""Compares what happens between launches: the host code's tensor operations and the test's looks at results.

Equal launches alone prove nothing about a host code that then returns another tensor, or fills the
output afterwards.
"""

from collections.abc import Sequence

from farm.analysis import ArrayArg, CandidateRow, HostStep, Row
from farm.recipes.cutile_rs.storages import Correspondence


class Steps:
    """Walks the steps of a row's two sides, launch by launch."""

    def __init__(
        self, reference: Row, candidate: CandidateRow, storages: Correspondence, *, forward_only: bool
    ) -> None:
        self._storages = storages
        dropped = {i for i, launch in enumerate(reference.launches) if forward_only and launch.backward}
        self._reference = [
            (step.after - sum(i < step.after for i in dropped), step)
            for step in reference.steps
            if not (forward_only and step.backward)
        ]
        self._candidate = [(step.after, step) for step in candidate.steps]

    def before(self, number: int) -> str | None:
        """The first difference between the steps just before launch `number`, from 1, or None."""
        mine = [step for after, step in self._reference if after == number - 1]
        theirs = [step for after, step in self._candidate if after == number - 1]
        place = f"before launch {number}" if number == 1 else f"after launch {number - 1}"
        for step, other in zip(mine, theirs, strict=False):
            difference = self._difference(step, other)
            if difference is not None:
                return f"{place}: {difference}"
        if len(mine) > len(theirs):
            return f"{place}: the reference does {_text(mine[len(theirs)])}, which the candidate does not"
        if len(theirs) > len(mine):
            return f"{place}: the candidate does {_text(theirs[len(mine)])}, which the reference does not"
        return None

    def _difference(self, mine: HostStep, theirs: HostStep) -> str | None:
        if mine.what != theirs.what or len(mine.tensors) != len(theirs.tensors):
            return f"the reference does {_text(mine)}, the candidate {_text(theirs)}"
        for tensor, other in zip(mine.tensors, theirs.tensors, strict=True):
            what = f"tensor {tensor.name} of {mine.what}"
            if _form(tensor) != _form(other):
                return f"{what} is {_shown(tensor)}, the candidate's {_shown(other)}"
            mismatch = self._storages.mismatch(tensor.address, other.address, what)
            if mismatch is not None:
                return mismatch
        return None


def _form(tensor: ArrayArg) -> tuple[str, Sequence[int], Sequence[int]]:
    return tensor.dtype, tensor.shape, tensor.strides


def _shown(tensor: ArrayArg) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} with strides {list(tensor.strides)}"


def _text(step: HostStep) -> str:
    return f"{step.what} on {', '.join(_shown(tensor) for tensor in step.tensors)}"

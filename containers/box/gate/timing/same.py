"""Whether two sides gave the same outputs, from fingerprints of a few numbers each. Pure.

A fingerprint holds projections on fixed random vectors. Rounding that is independent from element to element
moves a projection by about eps * sqrt(sum x^2), a result of other inputs by sqrt(2) * sqrt(sum x^2): the limit
lies between, and three projections must all hold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Unit roundoff times 2 of a dtype (its epsilon); what is not listed is compared as numbers.
EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}
#: Tensor cores may round the inputs of float32 work to 10 bits.
_LEAST_EPSILON = 2.0**-10
_ROUNDINGS = 16.0
_MOST = 0.4
#: Of what is no floating point: the sums' own rounding.
_EXACT = 1e-9


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """One output of one call, reduced in float64 over the finite elements."""

    name: str  #: `result 0`, or `input 2` for an argument that the call changed
    shape: tuple[int, ...]
    dtype: str
    dots: tuple[float, ...]  #: with fixed vectors of standard normal numbers
    squares: float  #: sum of x^2
    special: int  #: elements that are NaN or infinite

    @classmethod
    def of(cls, message: dict[str, Any]) -> "Fingerprint":
        """From a child's message. Raises ValueError, KeyError or TypeError on anything else."""
        return cls(
            name=str(message["name"]),
            shape=tuple(int(extent) for extent in message["shape"]),
            dtype=str(message["dtype"]),
            dots=tuple(float(value) for value in message["dots"]),
            squares=float(message["squares"]),
            special=int(message["special"]),
        )


def same(reference: Sequence[Fingerprint], other: Sequence[Fingerprint], *, coarsest: str | None = None) -> bool:
    """Whether the outputs agree; `coarsest` is the coarsest dtype of the inputs."""
    return len(reference) == len(other) and all(
        _one(mine, theirs, coarsest) for mine, theirs in zip(reference, other, strict=True)
    )


def _one(mine: Fingerprint, theirs: Fingerprint, coarsest: str | None) -> bool:
    if (mine.name, mine.shape, mine.dtype, mine.special) != (
        theirs.name,
        theirs.shape,
        theirs.dtype,
        theirs.special,
    ):
        return False
    if len(mine.dots) != len(theirs.dots) or not all(map(math.isfinite, (*theirs.dots, theirs.squares))):
        return False
    relative = _EXACT
    if mine.dtype in EPSILON:
        epsilon = max(EPSILON[mine.dtype], EPSILON.get(coarsest or "", 0.0), _LEAST_EPSILON)
        relative = min(_MOST, _ROUNDINGS * epsilon)
    if abs(mine.squares - theirs.squares) > relative * mine.squares:
        return False
    norm = math.sqrt(mine.squares)
    return all(abs(a - b) <= relative * norm for a, b in zip(mine.dots, theirs.dots, strict=True))

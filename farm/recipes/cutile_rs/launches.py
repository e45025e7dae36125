"""Compares the launches that the candidate's host code made with the traced ones of the reference.

The Tile IR comparison says which parameter of the candidate's entry plays which of the reference's;
given that, a launch is the same when grid and every used argument are the same. Pointers are compared
as places in storages (see `storages`), everything else by value. Between launches both sides must do
the same tensor operations, and the test must look at corresponding results (see `steps`).
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.analysis import (
    NO_LAUNCH,
    Arg,
    ArrayArg,
    CandidateLaunch,
    CandidateRow,
    ConstantArg,
    Launch,
    Row,
    RowStatus,
    ScalarArg,
)
from farm.recipes.cutile_rs.steps import Steps
from farm.recipes.cutile_rs.storages import Correspondence

#: (signature id, sha256 of the candidate's module) -> for each candidate parameter the index of the
#: reference parameter it plays, or None when it is unused. A pair whose IR differs is absent, or maps to
#: None where it is declared to differ: then nobody knows what the parameters are, and the grid alone is compared.
Parameters = Mapping[tuple[str, str], Sequence[int | None] | None]

_FORMATS = {"f64": "<d", "f32": "<f", "f16": "<e"}
_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One runtime parameter of the reference's entry."""

    what: str  #: in words, e.g. `stride 0 of input`
    raw: int  #: its bits, zero-extended to 64
    pointer: bool
    bits: int  #: significant bits of `raw`


@dataclass(frozen=True, kw_only=True)
class RowComparison:
    """What comparing one row came to."""

    key: str
    difference: str | None  #: the first divergence in a sentence, or None when all launches are the same


def quantities(args: Sequence[Arg]) -> tuple[Quantity, ...]:
    """The reference entry's parameters: an array gives pointer, extents, strides; constants give nothing."""
    found: list[Quantity] = []
    for arg in args:
        match arg:
            case ArrayArg():
                found.append(Quantity(what=f"pointer {arg.name}", raw=arg.address, pointer=True, bits=64))
                for name, values in (("extent", arg.shape), ("stride", arg.strides)):
                    for axis, value in enumerate(values):
                        bits = 32 if -(1 << 31) <= value < 1 << 31 else 64
                        what = f"{name} {axis} of {arg.name}"
                        found.append(Quantity(what=what, raw=value & _MASK64, pointer=False, bits=bits))
            case ScalarArg():
                found.append(_scalar(arg))
            case ConstantArg():
                pass
    return tuple(found)


def compare_rows(
    reference: Sequence[Row],
    candidate: Sequence[CandidateRow],
    parameters: Parameters,
    *,
    forward_only: bool = False,
) -> tuple[RowComparison, ...]:
    """Every traced row of the reference against the candidate's row of the same key, in order.

    A row that the reference did not trace is not in the result. With `forward_only` the launches that
    the reference made while autograd went backward are left out.
    """
    by_key = {row.key: row for row in candidate}
    result = []
    for row in reference:
        if row.status is not RowStatus.TRACED:
            continue
        other = by_key.get(row.key)
        difference = (
            "the candidate has no such row"
            if other is None
            else first_divergence(row, other, parameters, forward_only=forward_only)
        )
        result.append(RowComparison(key=row.key, difference=difference))
    return tuple(result)


def first_divergence(
    reference: Row, candidate: CandidateRow, parameters: Parameters, *, forward_only: bool = False
) -> str | None:
    """The first difference between a row's launches in a sentence, or None when they are the same."""
    expected = [launch for launch in reference.launches if not (forward_only and launch.backward)]
    idle = not reference.launches and candidate.reason == NO_LAUNCH
    match candidate.status:
        case RowStatus.FAILED if not idle:
            return f"the candidate's row failed: {candidate.reason}"
        case RowStatus.SKIPPED:
            return f"the candidate's row was skipped: {candidate.reason}"
        case RowStatus.FAILED | RowStatus.TRACED:
            pass
    if reference.launches and not expected:
        return "the reference's row has no launch to compare with"
    storages = Correspondence()
    steps = Steps(reference, candidate, storages, forward_only=forward_only)
    for number, launch in enumerate(expected, 1):
        if number > len(candidate.launches):
            made = len(candidate.launches)
            return f"launch {number}, {_name(launch)}, is missing: the candidate made {made} of {len(expected)}"
        difference = steps.before(number)
        if difference is not None:
            return difference
        difference = _launch_difference(launch, candidate.launches[number - 1], parameters, storages)
        if difference is not None:
            return f"launch {number}, {_name(launch)}: {difference}"
    if len(candidate.launches) > len(expected):
        extra = candidate.launches[len(expected)]
        return f"launch {len(expected) + 1}, {extra.entry}, is too many: the reference made {len(expected)}"
    return steps.before(len(expected) + 1)


def _launch_difference(
    reference: Launch, candidate: CandidateLaunch, parameters: Parameters, storages: Correspondence
) -> str | None:
    key = (reference.signature, candidate.sha256)
    if key not in parameters:
        return _other_ir(reference, candidate, parameters)
    if reference.grid != candidate.grid:
        return f"the grid is {_grid(reference.grid)}, the candidate's {_grid(candidate.grid)}"
    table = next((arg for arg in reference.args if isinstance(arg, ArrayArg) and arg.name.endswith("]")), None)
    if table is not None:
        return f"{table.name} is in a list of arrays, which the candidate cannot be compared on"
    roles = parameters[key]
    if roles is None:
        return None
    known = quantities(reference.args)
    if len(roles) != len(candidate.params):
        return f"the entry has {len(roles)} parameters, the candidate passes {len(candidate.params)}"
    for position, (role, value) in enumerate(zip(roles, candidate.params, strict=True)):
        if role is None:
            continue
        if role >= len(known):
            return f"parameter {position} of {candidate.entry} plays parameter {role}, which the reference lacks"
        difference = _value_difference(known, role, value, storages)
        if difference is not None:
            return difference
    return None


def _value_difference(known: Sequence[Quantity], role: int, value: int, storages: Correspondence) -> str | None:
    quantity = known[role]
    if quantity.pointer:
        return storages.mismatch(quantity.raw, value, quantity.what)
    mask = (1 << quantity.bits) - 1
    if value & mask == quantity.raw & mask and value >> quantity.bits in (0, _MASK64 >> quantity.bits):
        return None
    same = [other.what for other in known if not other.pointer and other.raw == value]
    hint = f", which is {same[0]}" if same else ""
    return f"{quantity.what} is {_plain(quantity.raw, quantity.bits)}, the candidate passes {value}{hint}"


def _other_ir(reference: Launch, candidate: CandidateLaunch, parameters: Parameters) -> str:
    others = sorted(
        signature for (signature, digest), roles in parameters.items() if digest == candidate.sha256 and roles
    )
    dtypes = ", ".join(f"{arg.name} {arg.dtype}" for arg in reference.args if isinstance(arg, ArrayArg))
    needed = f"signature {reference.signature} ({dtypes})"
    if others:
        return f"{candidate.entry} was chosen for signature {others[0]}, the launch needs {needed}"
    return f"the Tile IR of {candidate.entry} ({candidate.ir}) is not that of {needed}"


def _scalar(arg: ScalarArg) -> Quantity:
    what = f"scalar {arg.name}"
    if arg.dtype in _FORMATS:
        packed = struct.pack(_FORMATS[arg.dtype], arg.value)
        return Quantity(what=what, raw=int.from_bytes(packed, "little"), pointer=False, bits=8 * len(packed))
    bits = 1 if arg.dtype == "bool" else int(arg.dtype[1:])
    return Quantity(what=what, raw=int(arg.value) & ((1 << bits) - 1), pointer=False, bits=bits)


def _plain(raw: int, bits: int) -> int:
    value = raw & ((1 << bits) - 1)
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def _name(launch: Launch) -> str:
    return launch.kernel.rsplit(".", 1)[-1]


def _grid(grid: tuple[int, int, int]) -> str:
    return "x".join(str(extent) for extent in grid)

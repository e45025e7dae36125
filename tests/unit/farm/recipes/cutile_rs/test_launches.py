"""One launch of a row-wise kernel on both sides, and every way in which the candidate's may go wrong."""

import dataclasses
import struct

import pytest

from farm.analysis import (
    NO_LAUNCH,
    ArrayArg,
    CandidateLaunch,
    CandidateRow,
    ConstantArg,
    HostStep,
    Launch,
    Row,
    RowStatus,
    ScalarArg,
)
from farm.recipes.cutile_rs.launches import compare_rows, first_divergence, quantities
from farm.recipes.cutile_rs.storages import Maker, region_address

X = region_address(Maker.TEST, 0)
W = region_address(Maker.TEST, 1)
OUT = region_address(Maker.OP, 0)
#: Reference parameters: 0 x, 1-2 extents, 3-4 strides; 5 w, 6, 7; 8 out, 9-10, 11-12; 13 eps; 14 n.
ROLES = (8, 0, 5, 3, 2, None, 13, 14)
PARAMETERS = {("sig-f16", "sha-f16"): ROLES, ("sig-f32", "sha-f32"): ROLES}


def bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def array(
    name: str, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "f16"
) -> ArrayArg:
    return ArrayArg(name=name, dtype=dtype, shape=shape, strides=strides, address=address)


def launch(signature: str = "sig-f16", backward: bool = False) -> Launch:
    return Launch(
        kernel="pkg.ops.scale",
        signature=signature,
        grid=(64, 1, 1),
        args=(
            array("x", X, (64, 48), (96, 1)),
            array("w", W + 32, (48,), (1,)),
            array("out", OUT, (64, 48), (48, 1)),
            ConstantArg(name="TILE", value=64),
            ScalarArg(name="eps", dtype="f32", value=0.1),
            ScalarArg(name="n", dtype="i32", value=-3),
        ),
        backward=backward,
    )


def seen(**changes: object) -> CandidateLaunch:
    made = CandidateLaunch(
        entry="scale_entry",
        grid=(64, 1, 1),
        params=(OUT, X, W + 32, 96, 48, 7, bits(0.1), 0xFFFFFFFD),
        ir="ir/candidate/sha-f16.mlir",
        sha256="sha-f16",
    )
    return dataclasses.replace(made, **changes)


def with_param(position: int, value: int) -> CandidateLaunch:
    params = list(seen().params)
    params[position] = value
    return seen(params=tuple(params))


def row(*launches: Launch) -> Row:
    return Row(key="t[a=1]", node="t[cutile-1]", status=RowStatus.TRACED, reason=None, launches=launches)


def candidate(
    *launches: CandidateLaunch, status: RowStatus = RowStatus.TRACED, reason: str | None = None
) -> CandidateRow:
    return CandidateRow(key="t[a=1]", node="t[cutile-rs-1]", status=status, reason=reason, launches=launches)


def divergence(*launches: CandidateLaunch) -> str | None:
    return first_divergence(row(launch()), candidate(*launches), PARAMETERS)


def test_an_array_gives_pointer_extents_strides_and_constants_give_nothing() -> None:
    assert [q.what for q in quantities(launch().args)] == [
        "pointer x", "extent 0 of x", "extent 1 of x", "stride 0 of x", "stride 1 of x",
        "pointer w", "extent 0 of w", "stride 0 of w",
        "pointer out", "extent 0 of out", "extent 1 of out", "stride 0 of out", "stride 1 of out",
        "scalar eps", "scalar n",
    ]  # fmt: skip


def test_equal_launches_have_no_divergence() -> None:
    assert divergence(seen()) is None


def test_an_unused_parameter_may_have_any_value() -> None:
    assert divergence(with_param(5, 12345)) is None


def test_the_host_codes_own_tensor_may_have_another_number() -> None:
    assert divergence(with_param(0, region_address(Maker.OP, 9))) is None


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (seen(grid=(32, 1, 1)), "the grid is 64x1x1, the candidate's 32x1x1"),
        (seen(grid=(1, 64, 1)), "the grid is 64x1x1, the candidate's 1x64x1"),
        (with_param(3, 1), "stride 0 of x is 96, the candidate passes 1, which is stride 1 of x"),
        (with_param(4, 64), "extent 1 of x is 48, the candidate passes 64, which is extent 0 of x"),
        (with_param(1, W), "pointer x is the test's tensor 0, the candidate passes the test's tensor 1"),
        (with_param(2, W), "pointer w starts 32 bytes into its storage, the candidate's 0 bytes"),
        (
            with_param(0, X),
            "pointer out is the host code's tensor 0, the candidate passes the test's tensor 0",
        ),
        (
            with_param(1, OUT),
            "pointer x is the test's tensor 0, the candidate passes the host code's tensor 0",
        ),
        (with_param(6, bits(0.2)), "scalar eps is"),
        (with_param(7, 3), "scalar n is -3, the candidate passes 3"),
        (with_param(7, 0x1FFFFFFFD), "scalar n is -3"),
        (
            seen(sha256="sha-f32"),
            "chosen for signature sig-f32, the launch needs signature sig-f16 (x f16, w f16, out f16)",
        ),
        (seen(sha256="sha-other"), "is not that of signature sig-f16"),
        (seen(params=seen().params[:-1]), "the entry has 8 parameters, the candidate passes 7"),
    ],
)
def test_a_mutated_launch_is_named(made: CandidateLaunch, sentence: str) -> None:
    found = divergence(made)
    assert found is not None
    assert found.startswith("launch 1, scale: ")
    assert sentence in found


def test_every_used_parameter_is_looked_at() -> None:
    for position, role in enumerate(ROLES):
        changed = seen().params[position] ^ (1 << 3)
        assert (divergence(with_param(position, changed)) is None) == (role is None), position


def test_a_missing_launch_is_named() -> None:
    found = first_divergence(row(launch(), launch()), candidate(seen()), PARAMETERS)
    assert found == "launch 2, scale, is missing: the candidate made 1 of 2"


def test_an_extra_launch_is_named() -> None:
    assert divergence(seen(), seen()) == "launch 2, scale_entry, is too many: the reference made 1"


def test_no_launch_at_all_is_a_divergence() -> None:
    assert divergence() == "launch 1, scale, is missing: the candidate made 0 of 1"


def test_a_row_that_needs_no_kernel_must_make_no_launch() -> None:
    idle = candidate(status=RowStatus.FAILED, reason=NO_LAUNCH)
    assert first_divergence(row(), idle, PARAMETERS) is None
    assert first_divergence(row(launch()), idle, PARAMETERS) == f"the candidate's row failed: {NO_LAUNCH}"
    broken = candidate(status=RowStatus.FAILED, reason="died")
    assert first_divergence(row(), broken, PARAMETERS) == "the candidate's row failed: died"
    extra = first_divergence(row(), candidate(seen()), PARAMETERS)
    assert extra == "launch 1, scale_entry, is too many: the reference made 0"


def test_a_way_backward_alone_leaves_nothing_to_compare() -> None:
    found = first_divergence(row(launch(backward=True)), candidate(), PARAMETERS, forward_only=True)
    assert found == "the reference's row has no launch to compare with"


def two_outputs(first: int, second: int) -> tuple[Launch, CandidateLaunch]:
    reference = Launch(
        kernel="pkg.split",
        signature="s",
        grid=(4, 1, 1),
        args=(
            array("a", region_address(Maker.OP, 0), (8,), (1,)),
            array("b", region_address(Maker.OP, 1), (8,), (1,)),
        ),
    )
    return reference, seen(grid=(4, 1, 1), params=(first, second), sha256="m")


def test_one_tensor_in_place_of_two_is_aliasing() -> None:
    reference, made = two_outputs(region_address(Maker.OP, 5), region_address(Maker.OP, 5))
    found = first_divergence(row(reference), candidate(made), {("s", "m"): (0, 3)})
    assert found is not None
    assert "pointer b has a storage of its own" in found


def test_two_tensors_in_place_of_one_are_told_apart() -> None:
    reference, made = two_outputs(region_address(Maker.OP, 5), region_address(Maker.OP, 6))
    same = dataclasses.replace(
        reference,
        args=(reference.args[0], dataclasses.replace(reference.args[1], address=region_address(Maker.OP, 0))),
    )
    found = first_divergence(row(same), candidate(made), {("s", "m"): (0, 3)})
    assert found is not None
    assert "pointer b is the storage that was the host code's tensor 5 before" in found


def test_the_correspondence_holds_across_launches_of_a_row() -> None:
    reference, made = two_outputs(region_address(Maker.OP, 5), region_address(Maker.OP, 6))
    swapped = dataclasses.replace(made, params=made.params[::-1])
    assert first_divergence(row(reference, reference), candidate(made, made), {("s", "m"): (0, 3)}) is None
    found = first_divergence(row(reference, reference), candidate(made, swapped), {("s", "m"): (0, 3)})
    assert found is not None
    assert found.startswith("launch 2, split: pointer a is the storage that was the host code's tensor 5 before")


def test_memory_of_the_driver_may_stand_for_a_tensor_of_the_host_code() -> None:
    assert divergence(with_param(0, 0x7F0000001000)) is None
    found = divergence(with_param(1, 0x7F0000001000))
    assert found is not None
    assert "memory at 0x7f0000001000 that is no tensor's" in found


def test_arrays_in_a_list_are_refused() -> None:
    listed = dataclasses.replace(launch(), args=(array("x[0]", X, (4,), (1,)),))
    found = first_divergence(row(listed), candidate(seen()), PARAMETERS)
    assert found is not None
    assert "list of arrays" in found


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (RowStatus.FAILED, "the candidate's row failed: why"),
        (RowStatus.SKIPPED, "the candidate's row was skipped: why"),
    ],
)
def test_a_row_that_did_not_trace_is_a_divergence_even_when_it_launched(status: RowStatus, sentence: str) -> None:
    assert first_divergence(row(launch()), candidate(seen(), status=status, reason="why"), PARAMETERS) == sentence


def test_backward_launches_can_be_left_out_and_are_not_by_default() -> None:
    both = row(launch(), launch(backward=True))
    assert first_divergence(both, candidate(seen()), PARAMETERS, forward_only=True) is None
    assert first_divergence(both, candidate(seen()), PARAMETERS) is not None


def test_all_traced_rows_are_compared_and_a_missing_row_is_a_difference() -> None:
    skipped = dataclasses.replace(row(launch()), key="skipped", status=RowStatus.SKIPPED)
    lost = dataclasses.replace(row(launch()), key="lost")
    result = compare_rows([row(launch()), skipped, lost], [candidate(seen())], PARAMETERS)
    assert [(c.key, c.difference) for c in result] == [
        ("t[a=1]", None),
        ("lost", "the candidate has no such row"),
    ]


def step(what: str, *addresses: int, after: int = 1, backward: bool = False) -> HostStep:
    tensors = tuple(array(str(i), address, (64, 48), (48, 1)) for i, address in enumerate(addresses))
    return HostStep(after=after, what=what, tensors=tensors, backward=backward)


def stepped(mine: tuple[HostStep, ...], theirs: tuple[HostStep, ...], *, forward_only: bool = False) -> str | None:
    reference = dataclasses.replace(row(launch()), steps=mine)
    other = dataclasses.replace(candidate(with_param(0, region_address(Maker.OP, 4))), steps=theirs)
    return first_divergence(reference, other, PARAMETERS, forward_only=forward_only)


MADE = region_address(Maker.OP, 4)
READ = (step("read", OUT),)


def test_the_same_result_may_be_looked_at() -> None:
    assert stepped(READ, (step("read", MADE),)) is None


@pytest.mark.parametrize(
    ("theirs", "sentence"),
    [
        (
            (step("read", region_address(Maker.OP, 5)),),
            "is the storage that was the host code's tensor 4 before",
        ),
        (
            (step("aten.zero_.default()", MADE, MADE), step("read", MADE)),
            "the candidate aten.zero_.default()",
        ),
        ((step("read", MADE), step("read", MADE)), "the candidate does read"),
        ((), "the reference does read"),
        ((step("read", MADE + 2),), "starts 0 bytes into its storage, the candidate's 2 bytes"),
        ((step("read", MADE, after=0),), "before launch 1: the candidate does read"),
        (
            (dataclasses.replace(step("read", MADE), tensors=(array("0", MADE, (64, 48), (1, 64)),)),),
            "strides [1, 64]",
        ),
        (
            (dataclasses.replace(step("read", MADE), tensors=(array("0", MADE, (64, 48), (48, 1), "f32"),)),),
            "f32[64, 48]",
        ),
    ],
)
def test_another_result_or_another_operation_is_a_divergence(theirs: tuple[HostStep, ...], sentence: str) -> None:
    found = stepped(READ, theirs)
    assert found is not None
    assert sentence in found


def test_an_operation_with_other_plain_arguments_is_a_divergence() -> None:
    cat, other = (step(f"aten.cat.default({dim})", OUT, region_address(Maker.OP, 1)) for dim in (-1, 0))
    assert stepped((cat,), (dataclasses.replace(other, tensors=cat.tensors),)) is not None


def test_steps_of_the_way_backward_are_left_out_with_its_launches() -> None:
    reference = dataclasses.replace(
        row(launch(), launch(backward=True), launch()),
        steps=(
            step("read", OUT),
            step("read", region_address(Maker.OP, 2), after=2, backward=True),
            step("read", OUT, after=3),
        ),
    )
    other = dataclasses.replace(candidate(seen(), seen()), steps=(step("read", OUT), step("read", OUT, after=2)))
    assert first_divergence(reference, other, PARAMETERS, forward_only=True) is None
    assert first_divergence(reference, other, PARAMETERS) is not None

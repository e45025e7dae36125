"""From an entry and a signature to what the compile server is asked for."""

from dataclasses import replace

import pytest

from farm.analysis import ArrayArg, ConstantArg, ScalarArg, Signature
from farm.recipes.cutile_rs.instances import request
from farm.recipes.cutile_rs.instantiate import NotInstantiable, divisor, entry_for
from farm.recipes.cutile_rs.plan import Entry, EntryGeneric, EntryParam, GenericRole, ParamRole, Quantity

X = ArrayArg(name="x", dtype="f16", shape=(4, 48), strides=(96, 1), address=32)
SIGNATURE = Signature(
    id="s1",
    kernel="pkg.k",
    args=(X, ScalarArg(name="eps", dtype="f32", value=0.5), ConstantArg(name="TILE", value=64),
          ConstantArg(name="FLAG", value=True)),
    hints={"occupancy": 2, "num_ctas": None},
    tuned=False,
    ir="",
    bytecode="",
    sha256="",
)  # fmt: skip


def generic(role: GenericRole, source: str, **more: object) -> EntryGeneric:
    return EntryGeneric(name=source.upper(), role=role, source=source, rust_type="i32", **more)


def param(role: ParamRole, source: str, **more: object) -> EntryParam:
    return EntryParam(name=f"{source}_{role.value}", role=role, source=source, **more)


def entry(*generics: EntryGeneric, params: tuple[EntryParam, ...] = (), when: tuple[str, ...] = ()) -> Entry:
    return Entry(name="e", kernel="pkg.k", unsafe_fn=True, generics=generics, params=params, when=when)


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 16), (1, 1), (2, 2), (12, 4), (48, 16), (96, 16), (-8, 8), (7, 1), (1 << 40, 16)]
)
def test_a_divisor_is_the_largest_power_of_two_up_to_sixteen(value: int, expected: int) -> None:
    assert divisor(value) == expected
    assert value % expected == 0


def test_a_request_holds_every_generic_and_argument_of_the_entry() -> None:
    wanted = request(
        entry(
            generic(GenericRole.ELEMENT, "x"),
            generic(GenericRole.CONSTANT, "TILE"),
            generic(GenericRole.CONSTANT, "FLAG"),
            generic(GenericRole.DIVISOR, "x", quantity=Quantity.STRIDE, axis=0),
            generic(GenericRole.DIVISOR, "x", quantity=Quantity.EXTENT, axis=1),
            generic(GenericRole.DIVISOR, "x"),
            params=(
                param(ParamRole.POINTER, "x"),
                param(ParamRole.EXTENT, "x", axis=1),
                param(ParamRole.STRIDE, "x", axis=0),
                param(ParamRole.TENSOR, "x"),
                param(ParamRole.SCALAR, "eps"),
                param(ParamRole.SCALAR, "TILE"),
                param(ParamRole.SCALAR, "FLAG"),
            ),
        ),
        SIGNATURE,
    )
    assert wanted == {
        "id": "s1",
        "entry": "e",
        "generics": ["f16", "64", "true", "16", "16", "16"],
        "args": {
            "x_pointer": {"kind": "pointer", "address": 32},
            "x_extent": {"kind": "scalar", "value": 48},
            "x_stride": {"kind": "scalar", "value": 96},
            "x_tensor": {"kind": "tensor", "address": 32, "shape": [4, 48], "strides": [96, 1]},
            "eps_scalar": {"kind": "opaque"},
            "TILE_scalar": {"kind": "scalar", "value": 64},
            "FLAG_scalar": {"kind": "opaque"},
        },
        "occupancy": 2,
        "num_ctas": None,
    }


@pytest.mark.parametrize(
    "asked",
    [
        entry(generic(GenericRole.ELEMENT, "gone")),
        entry(generic(GenericRole.ELEMENT, "eps")),
        entry(generic(GenericRole.CONSTANT, "eps")),
        entry(params=(param(ParamRole.POINTER, "TILE"),)),
        entry(params=(param(ParamRole.SCALAR, "x"),)),
        entry(params=(param(ParamRole.EXTENT, "gone", axis=0),)),
    ],
)
def test_an_argument_that_the_signature_lacks_is_named(asked: Entry) -> None:
    with pytest.raises(NotInstantiable, match="has no"):
        request(asked, SIGNATURE)


def test_the_first_entry_whose_conditions_hold_is_taken() -> None:
    wide = replace(entry(when=("x.stride(1) == 1", "dtype(x) == 'f16'")), name="contiguous")
    other = replace(entry(), name="any")
    foreign = replace(entry(), name="foreign", kernel="pkg.other")
    assert entry_for((foreign, wide, other), SIGNATURE) is wide
    strided = replace(SIGNATURE, args=(replace(X, strides=(1, 4)), *SIGNATURE.args[1:]))
    assert entry_for((foreign, wide, other), strided) is other
    assert entry_for((foreign,), SIGNATURE) is None

"""The translator on small kernels: what it writes, what it asks of the host, what it refuses."""

from pathlib import Path

import pytest

from farm.analysis import Analysis, Arg, ArrayArg, ConstantArg, KernelSource, ScalarArg, Signature
from farm.fault import Fault
from farm.recipes.cutile_rs.kernel import Translation, translate
from farm.recipes.cutile_rs.plan import GenericRole, ParamRole, Quantity, promise

HEAD = "import cuda.tile as ct\n\n\n@ct.kernel\n"
MINIGYM = Path(__file__).parents[3] / "data" / "minigym" / "src" / "minigym" / "ops" / "cutile"


def array(name: str, dtype: str, *shape: int) -> ArrayArg:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return ArrayArg(name=name, dtype=dtype, shape=shape, strides=tuple(strides), address=4096)


def run(text: str, function: str, *signatures: tuple[Arg, ...]) -> Translation:
    names = tuple(arg.name for arg in signatures[0])
    line = text[: text.index(f"def {function}")].count("\n") + 1
    kernel = KernelSource(name=f"ops.{function}", function=function, file="ops.py", line=line, parameters=names)
    found = tuple(
        Signature(id=str(n), kernel=kernel.name, args=args, hints={}, tuned=False, ir="", bytecode="", sha256="")
        for n, args in enumerate(signatures)
    )
    analysis = Analysis(
        op="op", source="cutile", target="cutile-rs", gpu="sm_90", tests=(), source_files=("ops.py",), rows=(),
        kernels=(kernel,), signatures=found, void=False, versions={},
    )  # fmt: skip
    return translate("op", {"ops.py": text}, analysis)


def elementwise(body: str, *, constant: object = 64) -> Translation:
    text = f"{HEAD}def k(x, y, N: ct.Constant[int]):\n    i = ct.arange(64, dtype=ct.int32)\n{body}"
    signatures = [
        (array("x", dtype, 1000), array("y", dtype, 1000), ConstantArg(name="N", value=constant))  # type: ignore[arg-type]
        for dtype in ("f16", "f32")
    ]
    return run(text, "k", *signatures)


def test_one_entry_serves_all_element_types_and_tile_sizes() -> None:
    text = (MINIGYM / "relu.py").read_text(encoding="utf-8")
    signatures = [
        (array("x", dtype, 1000), array("y", dtype, 1000), ConstantArg(name="BLOCK", value=block))
        for dtype in ("f16", "bf16", "f32")
        for block in (256, 1024)
    ]
    found = run(text, "_relu_kernel", *signatures)
    assert found.plan is not None
    (entry,) = found.plan.entries
    assert [g.name for g in entry.generics if g.role is not GenericRole.PROMISE] == ["E", "BLOCK"]
    assert [p.role for p in entry.params] == [ParamRole.POINTER, ParamRole.EXTENT, ParamRole.STRIDE] * 2
    assert entry.when == ()
    assert "maxf(value, zero, nan::Disabled, ftz::Disabled)" in found.plan.source


def test_a_sum_of_a_product_fuses_and_a_shared_product_does_not() -> None:
    fused = elementwise("    a = ct.gather(x, i)\n    ct.scatter(y, i, a * a + a)\n")
    shared = elementwise("    a = ct.gather(x, i)\n    b = a * a\n    ct.scatter(y, i, (b + a) * b)\n")
    assert fused.plan is not None
    assert shared.plan is not None
    assert "fma(a, a, a, rounding::NearestEven, ftz::Disabled)" in fused.plan.source
    assert "fma(" not in shared.plan.source


def test_a_fusion_that_a_conversion_prevents_for_some_types_gives_two_entries() -> None:
    sum_of = "(a.astype(ct.float32) * 3.0).astype(x.dtype) + a"
    body = f"    a = ct.gather(x, i)\n    ct.scatter(y, i, {sum_of})\n"
    found = elementwise(body)
    assert found.plan is not None
    conditions = sorted(entry.when for entry in found.plan.entries)
    assert len(conditions) == 2
    assert found.plan.source.count("fma(") == 1


def test_a_float_constant_becomes_a_condition_of_the_entry() -> None:
    found = elementwise("    ct.scatter(y, i, ct.gather(x, i) * N)\n", constant=0.5)
    assert found.plan is not None
    assert all("N == 0.5" in entry.when for entry in found.plan.entries)


@pytest.mark.parametrize(
    ("body", "construct", "fault"),
    [
        ("    a = ct.frobnicate(x)\n", "ct.frobnicate(x)", Fault.UNSUPPORTED),
        (
            "    a = ct.cumsum(ct.gather(x, i), axis=0)\n",
            "ct.cumsum(ct.gather(x, i), axis=0)",
            Fault.UNSUPPORTED,
        ),
        ("    while True:\n        pass\n", "while True: ..", Fault.UNSUPPORTED),
        (
            "    a = ct.exp(ct.gather(x, i).astype(ct.float32), rounding_mode=ct.RoundingMode.APPROX)\n",
            "ct.exp(ct.gather(x, i).astype(ct.float32), rounding_mode=ct.RoundingMode.APPROX)",
            Fault.DSL_LIMIT,
        ),
    ],
)
def test_a_refusal_names_the_place_and_the_way_out(body: str, construct: str, fault: Fault) -> None:
    found = elementwise(body)
    assert found.plan is None
    assert found.fault is fault
    (finding,) = found.findings
    assert (finding.file, finding.line, finding.construct) == ("ops.py", 7, construct)
    assert finding.advice


def test_a_file_that_is_not_python_is_a_finding() -> None:
    arguments = (array("x", "f32", 8), ScalarArg(name="a", dtype="f32", value=1.0))
    found = run("def k(x, a:\n", "k", arguments)
    assert found.plan is None
    assert "cannot be read" in found.findings[0].message


@pytest.mark.parametrize(
    ("quantity", "value", "size", "promised"),
    [
        (Quantity.POINTER, 4096, 2, 16), (Quantity.POINTER, 4100, 2, 1), (Quantity.EXTENT, 1, 2, 0),
        (Quantity.EXTENT, 1000, 2, 1), (Quantity.EXTENT, 0, 2, 16), (Quantity.STRIDE, 1000, 2, 8),
        (Quantity.STRIDE, 1000, 4, 4), (Quantity.STRIDE, 6, 4, 1), (Quantity.STRIDE, 1, 4, 0),
    ],
)  # fmt: skip
def test_promises_are_those_of_the_sources_launcher(
    quantity: Quantity, value: int, size: int, promised: int
) -> None:
    assert promise(quantity, value, size) == promised

"""What an entry promises of extents, strides, addresses and values is what the source's launch promises."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.toolchain import Toolchain
from farm.analysis import Analysis, Arg, ArrayArg, ConstantArg, KernelSource, ScalarArg, Signature
from farm.codec import encode
from farm.recipes.cutile_rs.instances import request
from farm.recipes.cutile_rs.instantiate import entry_for
from farm.recipes.cutile_rs.kernel import translate
from farm.tileir import compare, parse

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "tests" / "data" / "kernels" / "exact.py"
ALIGNED, ODD = 1 << 40, (1 << 40) + 4
#: Shapes with their strides: whole, one row, one column, one element, padded rows by 16 bytes and not.
ROWS = (
    ((64, 512), (512, 1)),
    ((7, 100), (100, 1)),
    ((1, 100), (100, 1)),
    ((5, 1), (1, 1)),
    ((1, 1), (1, 1)),
    ((1, 100), (333, 1)),
    ((1, 96), (320, 1)),
    ((9, 33), (48, 1)),
)


def array(name: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], at: int = ALIGNED) -> ArrayArg:
    return ArrayArg(name=name, dtype=dtype, shape=shape, strides=strides, address=at)


def constant(name: str, value: int) -> ConstantArg:
    return ConstantArg(name=name, value=value)


def cases() -> Iterator[tuple[str, list[tuple[Arg, ...]]]]:
    floats = ("f16", "bf16", "f32")
    rows = [(dtype, shape, strides, ALIGNED) for dtype in ("f16", "f32") for shape, strides in ROWS]
    rows.append(("bf16", *ROWS[4], ODD))
    tile = {512: 512, 100: 128, 96: 128, 33: 64, 1: 1}
    yield (
        "single_elements",
        [
            (array("x", d, s, t, at), array("y", d, (s[0], w), (w, 1), at), constant("TILE", tile[s[1]]))
            for d, s, t, at in rows
            for w in (8, 3)
        ],
    )
    yield (
        "whole_numbers",
        [(array("x", "i32", (n,), (1,)), array("y", "i32", (n,), (1,)), constant("TILE", 128)) for n in (1000, 1)],
    )
    yield (
        "copied_tiles",
        [
            (array("x", d, s, t, at), array("y", d, s, (s[1], 1)), constant("ROWS", 4), constant("TILE", 64))
            for d, s, t, at in rows
        ],
    )
    yield (
        "counted_tiles",
        [
            (array("x", d, s, t, at), array("y", "f32", (s[0],), (1,)), constant("TILE", 64))
            for d, s, t, at in rows
        ],
    )
    yield (
        "padded_rows",
        [
            (array("x", d, s, t, at), array("y", d, s, (s[1], 1)), constant("TILE", tile[s[1]]))
            for d, s, t, at in rows
        ],
    )
    yield (
        "two_rows",
        [
            (array("x", d, s, t, at), array("y", d, (max(s[0] // 2, 1), s[1]), (s[1], 1)), constant("TILE", 64))
            for d, s, t, at in rows[:2]
        ],
    )
    yield "picked_rows", [
        (
            array("table", d, s, t),
            array("index", "i32", (7,), (1,)),
            array("y", d, (7, s[1]), (s[1], 1)),
            constant("TILE", tile[s[1]]),
        )
        for d, s, t, _ in rows[::2]
    ]  # fmt: skip
    yield "chosen_values", [
        (
            array("x", d, (n,), (1,)),
            array("wanted", "bool", (n,), (1,)),
            array("y", d, (n,), (1,)),
            ScalarArg(name="value", dtype="f32", value=0.5),
            constant("TILE", 128),
        )
        for d in floats
        for n in (1024, 1000, 1)
    ]  # fmt: skip


@pytest.fixture
def toolchain(toolchain: Toolchain) -> Path:
    return toolchain.root


@pytest.mark.parametrize(("name", "arguments"), list(cases()), ids=[name for name, _ in cases()])
def test_every_signature_has_the_references_tile_ir(
    name: str, arguments: list[tuple[Arg, ...]], toolchain: Path, tmp_path: Path
) -> None:
    compare_with_reference(name, arguments, arguments, toolchain, tmp_path)


def strided() -> Iterator[tuple[str, list[tuple[Arg, ...]], list[tuple[Arg, ...]]]]:
    """Launches that rows make, and launches with strides and addresses that none of them has."""
    rows = dict(cases())
    yield (
        "whole_numbers",
        rows["whole_numbers"],
        [
            (array("x", "i32", (n,), (step,), at), array("y", "i32", (n,), (to,)), constant("TILE", 128))
            for n in (1000, 33)
            for step, to, at in ((2, 1, ALIGNED), (1, 3, ODD), (8, 16, ODD))
        ],
    )
    yield (
        "padded_rows",
        rows["padded_rows"],
        [
            (array("x", d, s, t, at), array("y", d, s, to), constant("TILE", 128))
            for d in ("f16", "f32")
            for s, t, to, at in (
                ((64, 100), (200, 2), (100, 1), ALIGNED),
                ((64, 100), (1, 64), (100, 1), ODD),
                ((7, 100), (0, 1), (1, 7), ALIGNED),
            )
        ],
    )
    yield (
        "single_elements",
        rows["single_elements"],
        [
            (array("x", d, (7, 100), (200, 2)), array("y", d, (7, 3), (1, 7)), constant("TILE", 128))
            for d in ("f16", "f32")
        ],
    )


@pytest.mark.parametrize(("name", "rows", "others"), list(strided()), ids=[name for name, _, _ in strided()])
def test_an_array_that_is_reached_by_address_may_have_strides_that_no_row_has(
    name: str, rows: list[tuple[Arg, ...]], others: list[tuple[Arg, ...]], toolchain: Path, tmp_path: Path
) -> None:
    compare_with_reference(name, rows, others, toolchain, tmp_path)


def compare_with_reference(
    name: str, traced: list[tuple[Arg, ...]], asked: list[tuple[Arg, ...]], toolchain: Path, tmp_path: Path
) -> None:
    """A kernel translated from some launches has, for others, the Tile IR that the source gives them."""
    signatures = signed(name, asked)
    references = export(signatures, toolchain, tmp_path)
    text = KERNELS.read_text(encoding="utf-8")
    line = text[: text.index(f"def {name}(")].count("\n") + 1
    parameters = tuple(arg.name for arg in asked[0])
    kernel = KernelSource(name=name, function=name, file="exact.py", line=line, parameters=parameters)
    analysis = Analysis(
        op="exact", source="cutile", target="cutile-rs", gpu="sm_90", tests=(), source_files=("exact.py",),
        rows=(), kernels=(kernel,), signatures=signed(name, traced), void=False, versions={},
    )  # fmt: skip
    translation = translate("exact", {"exact.py": text}, analysis)
    assert translation.plan is not None, translation.findings
    source = tmp_path / "kernel.rs"
    source.write_text(translation.plan.source, encoding="utf-8")
    wanted = []
    for signature in signatures:
        entry = entry_for(translation.plan.entries, signature)
        assert entry is not None, signature.args
        wanted.append(request(entry, signature))
    question = tmp_path / "request.json"
    folder = tmp_path / "candidate"
    folder.mkdir()
    order = {"file": str(source), "gpu": "sm_90", "out": str(folder), "entries": wanted}
    question.write_text(json.dumps(order), encoding="utf-8")
    server = str(toolchain / "native/bin/tilefarm-kc")
    ended = subprocess.run([server, "compile", str(question)], capture_output=True, text=True)
    for signature, result in zip(signatures, json.loads(ended.stdout)["results"], strict=True):
        assert result["error"] is None, result["error"]
        argv = [str(toolchain / "cuda/bin/tileirdisasm"), result["bytecode"]]
        candidate = subprocess.run(argv, check=True, capture_output=True, text=True)
        found = compare(parse(references[signature.id]), parse(candidate.stdout), gpu="sm_90")
        assert found.same, f"{signature.args}: {found.difference}"


def signed(name: str, arguments: list[tuple[Arg, ...]]) -> tuple[Signature, ...]:
    return tuple(
        Signature(id=str(n), kernel=name, args=args, hints={}, tuned=False, ir="", bytecode="", sha256="")
        for n, args in enumerate(arguments)
    )


def export(signatures: tuple[Signature, ...], toolchain: Path, tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "reference"
    folder.mkdir()
    asked = tmp_path / "export.json"
    question = {
        "file": str(KERNELS), "out": str(folder), "disassembler": str(toolchain / "cuda/bin/tileirdisasm"),
        "signatures": encode(signatures),
    }  # fmt: skip
    asked.write_text(json.dumps(question), encoding="utf-8")
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "CUDA_TOOLKIT_PATH": str((toolchain / "cuda").resolve()),
        "LD_LIBRARY_PATH": str(toolchain / "native/lib"),
        "TILEFARM_STANDIN_DIR": str(tmp_path),
    }
    argv = [str(toolchain / "venv/bin/python"), str(KERNELS.parent / "export.py"), str(asked)]
    subprocess.run(argv, check=True, env=env)
    return {s.id: (folder / f"{s.id}.mlir").read_text(encoding="utf-8") for s in signatures}

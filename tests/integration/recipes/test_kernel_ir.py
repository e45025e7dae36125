"""Translated kernels of the built-in repository compile to the Tile IR of their source."""

import json
import subprocess
from pathlib import Path

import pytest

from containers.toolchain import Toolchain
from farm.analysis import Analysis, Arg, ArrayArg, ConstantArg, KernelSource, ScalarArg, Signature
from farm.recipes.cutile_rs.instances import request
from farm.recipes.cutile_rs.instantiate import entry_for
from farm.recipes.cutile_rs.kernel import translate
from farm.tileir import compare, parse

pytestmark = pytest.mark.toolchain

DATA = Path(__file__).parents[2] / "data"
OPS = DATA / "minigym" / "src" / "minigym" / "ops" / "cutile"


def array(name: str, *shape: int) -> ArrayArg:
    strides = (shape[1], 1) if len(shape) == 2 else (1,)
    return ArrayArg(name=name, dtype="f16", shape=shape, strides=strides, address=4096)


def alpha() -> ScalarArg:
    return ScalarArg(name="alpha", dtype="f32", value=2.0)


def constant(name: str, value: int) -> ConstantArg:
    return ConstantArg(name=name, value=value)


CASES: dict[str, tuple[str, tuple[Arg, ...]]] = {
    "relu_kernel": ("relu", (array("x", 1000), array("y", 1000), constant("BLOCK", 1024))),
    "scale_tail_kernel": (
        "scale",
        (
            array("x", 1000),
            array("y", 1000),
            ScalarArg(name="alpha", dtype="f32", value=2.0),
            constant("BLOCK", 512),
        ),
    ),
    "add_bias_kernel": (
        "add_bias",
        (
            array("x", 10, 1000),
            array("bias", 1000),
            array("y", 10, 1000),
            constant("ROWS", 4),
            constant("COLUMNS", 256),
        ),
    ),
    "silu_and_mul_kernel": (
        "silu_and_mul",
        (array("x", 10, 2000), array("y", 10, 1000), constant("WIDTH", 1000), constant("TILE", 1024)),
    ),
}


@pytest.fixture
def toolchain(toolchain: Toolchain) -> Path:
    return toolchain.root


@pytest.mark.parametrize("name", CASES)
def test_the_candidate_has_the_references_tile_ir(name: str, toolchain: Path, tmp_path: Path) -> None:
    op, args = CASES[name]
    file, function = f"{op}.py", f"_{name}"
    text = (OPS / file).read_text(encoding="utf-8")
    line = text[: text.index(f"def {function}")].count("\n") + 1
    parameters = tuple(arg.name for arg in args)
    kernel = KernelSource(name=name, function=function, file=file, line=line, parameters=parameters)
    signature = Signature(id=name, kernel=name, args=args, hints={}, tuned=False, ir="", bytecode="", sha256="")
    analysis = Analysis(
        op=op, source="cutile", target="cutile-rs", gpu="sm_90", tests=(), source_files=(file,), rows=(),
        kernels=(kernel,), signatures=(signature,), void=False, versions={},
    )  # fmt: skip
    plan = translate(op, {file: text}, analysis).plan
    assert plan is not None
    entry = entry_for(plan.entries, signature)
    assert entry is not None
    source = tmp_path / "kernel.rs"
    source.write_text(plan.source, encoding="utf-8")
    question = tmp_path / "request.json"
    wanted = {"file": str(source), "gpu": "sm_90", "out": str(tmp_path), "entries": [request(entry, signature)]}
    question.write_text(json.dumps(wanted), encoding="utf-8")
    server = str(toolchain / "native/bin/tilefarm-kc")
    subprocess.run([server, "check", str(source)], check=True, capture_output=True)
    ended = subprocess.run([server, "compile", str(question)], capture_output=True, text=True)
    (result,) = json.loads(ended.stdout)["results"]
    assert result["error"] is None
    disassembler = str(toolchain / "cuda/bin/tileirdisasm")
    candidate = subprocess.run([disassembler, result["bytecode"]], check=True, capture_output=True, text=True)
    reference = (DATA / "kernel_ir" / f"{name}.mlir").read_text(encoding="utf-8")
    found = compare(parse(reference), parse(candidate.stdout), gpu="sm_90")
    assert found.same, str(found.difference)

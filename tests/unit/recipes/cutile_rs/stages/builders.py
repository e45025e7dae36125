"""A small op as stages see it: one kernel, one signature, rows of one launch each."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from farm.analysis import (
    Analysis,
    ArrayArg,
    CandidateLaunch,
    CandidateRow,
    ConstantArg,
    HostStep,
    KernelSource,
    Launch,
    Row,
    RowStatus,
    Signature,
)
from farm.codec import encode
from farm.orders import Purpose
from farm.recipes.cutile_rs.storages import Maker, region_address
from tests.builders import order

IR = Path(__file__).parents[4] / "data" / "kernel_ir" / "relu_kernel.mlir"
OTHER_IR = IR.with_name("add_bias_kernel.mlir")
X = region_address(Maker.TEST, 0)
Y = region_address(Maker.OP, 0)
ARGS = (
    ArrayArg(name="x", dtype="f16", shape=(1000,), strides=(1,), address=X),
    ArrayArg(name="y", dtype="f16", shape=(1000,), strides=(1,), address=Y),
    ConstantArg(name="BLOCK", value=1024),
)
SIGNATURE = Signature(
    id="sig",
    kernel="relu._relu_kernel",
    args=ARGS,
    hints={},
    tuned=False,
    ir="ir/reference/sig.mlir",
    bytecode="ir/reference/sig.tileirbc",
    sha256="r",
)
LAUNCH = Launch(kernel=SIGNATURE.kernel, signature="sig", grid=(1, 1, 1), args=ARGS)
MADE = CandidateLaunch(
    entry="relu_kernel", grid=(1, 1, 1), params=(X, 1000, 1, Y, 1000, 1), ir="ir/candidate/c.mlir", sha256="c"
)
READ = HostStep(after=1, what="read", tensors=(replace(ARGS[1], name="0"),))
ORDER = order(purpose=Purpose.GATE, patch_sha256="p" * 64)


def row(key: str = "t[0]", *, launches: int = 1, **changes: object) -> Row:
    """A row of the source."""
    made = Row(
        key=key,
        node=f"{key}-cutile",
        status=RowStatus.TRACED,
        reason=None,
        launches=(LAUNCH,) * launches,
        steps=(READ,) if launches == 1 else (),
    )
    return replace(made, **changes)


def mate(key: str = "t[0]", *, launches: int = 1, **changes: object) -> CandidateRow:
    """A row of the target."""
    made = CandidateRow(
        key=key,
        node=f"{key}-rs",
        status=RowStatus.TRACED,
        reason=None,
        launches=(MADE,) * launches,
        steps=(READ,) if launches == 1 else (),
    )
    return replace(made, **changes)


def analysis(*rows: Row, **changes: object) -> Analysis:
    """What stage A found out."""
    made = Analysis(
        op="relu",
        source="cutile",
        target="cutile-rs",
        gpu="sm_90",
        tests=("tests/ops/test_relu.py",),
        source_files=("src/minigym/ops/cutile/relu.py",),
        rows=rows,
        kernels=(
            KernelSource(
                name=SIGNATURE.kernel,
                function="_relu_kernel",
                file="src/minigym/ops/cutile/relu.py",
                line=13,
                parameters=("x", "y", "BLOCK"),
            ),
        ),
        signatures=(SIGNATURE,),
        void=False,
        versions={"cuda-tile": "1.7.0"},
    )
    return replace(made, **changes)


def write_reference(out: Path, found: Analysis) -> None:
    """What the trace program leaves for the reference."""
    write_ir(out / SIGNATURE.ir)
    document = {
        "rows": encode(found.rows),
        "kernels": encode(found.kernels),
        "signatures": encode(found.signatures),
        "versions": found.versions,
    }
    (out / "reference.json").write_text(json.dumps(document))


def write_ir(path: Path, source: Path = IR) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)


def folders(tmp_path: Path, candidate: Path = IR) -> tuple[Path, Path]:
    """Folders of the reference's and the candidate's artifacts."""
    write_ir(tmp_path / "r" / SIGNATURE.ir)
    write_ir(tmp_path / "c" / MADE.ir, candidate)
    return tmp_path / "r", tmp_path / "c"

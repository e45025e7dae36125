"""The gate box's program: the copy of the patched tree against its text, byte for byte."""

from pathlib import Path

from farm.fault import Fault
from farm.gates import Basis, Certificate, GateName, GateReport, GateResult, RowProof, Ruling, SignatureProof
from farm.orders import BoxOrder, Diagnosis
from farm.recipes import BoxIO
from farm.recipes.plain_copy.layout import Layout
from farm.tree import sha256


def judge(order: BoxOrder, io: BoxIO, layout: Layout) -> GateReport:
    """All three gates rest on one comparison: a copy is one row with one signature, and runs as its text does."""
    text, copy = io.workspace / layout.text(order.op), io.workspace / layout.copy(order.op)
    if not copy.is_file() or copy.is_symlink():
        return _undone(f"the patch makes no file {layout.copy(order.op)}")
    difference = _difference(text, copy)
    same = difference is None
    row = RowProof(key=layout.text(order.op), same=same, launches=1, difference=difference)
    proof = SignatureProof(
        signature=sha256(text.read_bytes()),
        kernel=layout.text(order.op),
        entry=layout.copy(order.op),
        same=same,
        rules=(),
        difference=difference,
    )
    return GateReport(
        gates=tuple(_gate(gate, difference) for gate in GateName),
        certificate=Certificate(
            op=order.op,
            gpu=order.gpu,
            rows=(row,),
            signatures=(proof,),
            versions={},
            patch_sha256=order.patch_sha256 or "",
        ),
        rows_collected=1,
        rows_expected=1,
        diagnosis=None,
    )


def _difference(text: Path, copy: Path) -> str | None:
    wanted, found = text.read_bytes(), copy.read_bytes()
    if wanted == found:
        return None
    at = next((at for at, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b), None)
    return f"{len(found)} bytes instead of {len(wanted)}" if at is None else f"byte {at} differs"


def _gate(gate: GateName, difference: str | None) -> GateResult:
    if difference is not None:
        return GateResult(gate=gate, ruling=Ruling.FAIL, basis=None, summary=difference)
    return GateResult(gate=gate, ruling=Ruling.PASS, basis=Basis.CERTIFIED, summary="certified the same bytes")


def _undone(summary: str) -> GateReport:
    not_run = tuple(
        GateResult(gate=gate, ruling=Ruling.NOT_RUN, basis=None, summary="not run") for gate in GateName
    )
    diagnosis = Diagnosis(stage=None, fault=Fault.AGENT, summary=summary, next_step="the patch must hold it")
    return GateReport(gates=not_run, certificate=None, rows_collected=0, rows_expected=0, diagnosis=diagnosis)

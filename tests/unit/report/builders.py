"""Runs, jobs and attempts as the ledger and the boxes would hand them over."""

from farm.fault import Fault, Owner
from farm.gates import (
    Basis,
    Certificate,
    GateName,
    GateReport,
    GateResult,
    RowProof,
    Ruling,
    SignatureProof,
)
from farm.orders import BoxResult, Diagnosis, StageRecord
from farm.pipeline.stage import ExecutorKind, Finding, Reply, Stage, ValidatorExit, Verdict
from farm.report.evidence import AttemptEvidence

FINDING = Finding(
    file="src/pkg/ops/cutile/wave.py",
    line=14,
    column=9,
    construct="ct.sin(x)",
    message="sin has no counterpart in cutile 0.2.0",
    advice="write it as a polynomial",
)


def stage_b_failed(finding: Finding | None = FINDING) -> AttemptEvidence:
    reply = Reply(
        verdict=Verdict.BLOCKED,
        owner=Owner.KERNEL,
        fault=Fault.UNSUPPORTED,
        fail_class=None,
        findings=(finding,) if finding else (),
        validators=(ValidatorExit(name="kernel-compiles", exit_code=1, message="no kernel.rs"),),
        summary="the kernel uses sin",
    )
    passed = Reply(verdict=Verdict.PASS, owner=None, fault=None, fail_class=None, summary="8 of 8 rows traced")
    return AttemptEvidence(
        number=1,
        result=BoxResult(
            complete=False,
            records=(record(Stage.A, passed, 4.0), record(Stage.B, reply, 0.5)),
            diagnosis=Diagnosis(
                stage=Stage.B,
                fault=Fault.UNSUPPORTED,
                summary="the kernel uses sin",
                next_step=finding.advice if finding and finding.advice else "read the log",
            ),
        ),
        seconds=130.0,
    )


def record(stage: Stage, reply: Reply, seconds: float) -> StageRecord:
    return StageRecord(
        stage=stage, visit=1, executor=ExecutorKind.PROGRAM, reply=reply, seconds=seconds, next="stop"
    )


def certified(same: bool = True) -> AttemptEvidence:
    ruling = Ruling.PASS if same else Ruling.FAIL
    difference = None if same else "addi has operands in another order"
    return AttemptEvidence(
        number=1,
        gates=GateReport(
            gates=(
                GateResult(gate=GateName.CORRECTNESS, ruling=ruling, basis=Basis.CERTIFIED, summary="rows"),
                GateResult(gate=GateName.GEOMEAN, ruling=ruling, basis=Basis.CERTIFIED, summary="Tile IR"),
            ),
            certificate=Certificate(
                op="relu",
                gpu="sm_90",
                rows=(RowProof(key="t[16]", same=same, launches=1, difference=difference),),
                signatures=(
                    SignatureProof(
                        signature="1f3a",
                        kernel="relu.k",
                        entry="relu_kernel",
                        same=same,
                        rules=(),
                        difference=difference,
                    ),
                ),
                versions={"tileiras": "13.5"},
                patch_sha256="0" * 64,
            ),
            rows_collected=1,
            rows_expected=1,
            diagnosis=None,
        ),
        seconds=12.0,
    )

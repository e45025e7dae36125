"""What a gate report means: every combination of what three gates can say."""

import itertools
from dataclasses import replace

import pytest

from farm.acceptance import Decision, Judgement, decide, with_measured
from farm.fault import Fault
from farm.gates import Basis, Certificate, GateName, GateReport, GateResult, RowProof, Ruling, SignatureProof
from farm.job import Accept
from farm.measured.model import Measured
from farm.orders import Diagnosis

PATCH = "a" * 64
ROW = RowProof(key="t[0]", same=True, launches=1, difference=None)
SIGNATURE = SignatureProof(signature="s", kernel="k", entry="e", same=True, rules=(), difference=None)
CERTIFICATE = Certificate(
    op="relu", gpu="sm_90", rows=(ROW, ROW), signatures=(SIGNATURE,), versions={}, patch_sha256=PATCH
)
ALL = tuple(GateName)
SAYS = [
    None,
    (Ruling.PASS, Basis.MEASURED),
    (Ruling.PASS, Basis.CERTIFIED),
    (Ruling.PASS, None),
    *((ruling, basis) for ruling in Ruling if ruling is not Ruling.PASS for basis in (None, *Basis)),
]


def report(*says: tuple[Ruling, Basis | None] | None, **changes: object) -> GateReport:
    gates = tuple(
        GateResult(gate=gate, ruling=said[0], basis=said[1], summary="said")
        for gate, said in zip(GateName, says, strict=True)
        if said is not None
    )
    whole = GateReport(gates=gates, certificate=CERTIFICATE, rows_collected=2, rows_expected=2, diagnosis=None)
    return replace(whole, **changes)


def measured(*gates: GateResult, patch_sha256: str = PATCH) -> Measured:
    """What raw records say; a gate that is not given was not passed."""
    given = {gate.gate: gate for gate in gates}
    nothing = {
        name: GateResult(gate=name, ruling=Ruling.NOT_RUN, basis=None, summary="not run") for name in GateName
    }
    return Measured(
        subject="judge.relu",
        op="relu",
        patch_sha256=patch_sha256,
        gpu="NVIDIA H200",
        toolchain={},
        gates=tuple({**nothing, **given}.values()),
        rows_expected=2,
        rows_collected=2,
        rows=(),
        configs=(),
        second=(),
        control=None,
        low=None,
        ratio=None,
        high=None,
        flags=(),
    )


def as_said(given: GateReport) -> Measured | None:
    """Raw records that say what the report says it measured."""
    gates = [gate for gate in given.gates if gate.basis is Basis.MEASURED]
    return measured(*gates) if gates else None


def decided(
    given: GateReport, accept: Accept = Accept.CERTIFIED, certifiable: tuple[GateName, ...] = ALL
) -> Decision:
    return decide(given, patch_sha256=PATCH, accept=accept, certifiable=certifiable, measured=as_said(given))


def test_every_combination_lands_exactly_when_all_three_gates_passed_as_asked_for() -> None:
    measured, certified = (Ruling.PASS, Basis.MEASURED), (Ruling.PASS, Basis.CERTIFIED)
    landed = 0
    for says in itertools.product(SAYS, repeat=3):
        for accept in Accept:
            good = {measured} if accept is Accept.MEASURED else {measured, certified}
            found = decided(report(*says), accept)
            rulings = {said[0] for said in says if said is not None}
            if Ruling.FAIL in rulings:
                assert (found.judgement, found.fault) == (Judgement.REJECT, Fault.KERNEL), says
            elif Ruling.INFRA in rulings:
                assert (found.judgement, found.fault) == (Judgement.REPEAT, Fault.INFRA), says
            elif all(said in good for said in says):
                assert found.judgement is Judgement.LAND, says
                landed += 1
            else:
                assert found.judgement is Judgement.AWAIT_GPU, says
    assert landed == 1 + 2**3


@pytest.mark.parametrize("gate", GateName)
def test_a_gate_that_the_recipe_does_not_let_certify_waits_for_a_gpu(gate: GateName) -> None:
    given = report(*[(Ruling.PASS, Basis.CERTIFIED)] * 3)
    found = decided(given, certifiable=tuple(other for other in GateName if other is not gate))
    assert found.judgement is Judgement.AWAIT_GPU
    assert gate.value in found.reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"certificate": None}, "no certificate"),
        ({"certificate": replace(CERTIFICATE, patch_sha256="b" * 64)}, "another patch"),
        ({"certificate": replace(CERTIFICATE, rows=())}, "not complete"),
        ({"certificate": replace(CERTIFICATE, signatures=())}, "not complete"),
        ({"certificate": replace(CERTIFICATE, rows=(ROW, replace(ROW, same=False)))}, "not complete"),
        ({"certificate": replace(CERTIFICATE, signatures=(replace(SIGNATURE, same=False),))}, "not complete"),
        ({"rows_collected": 1}, "2 rows expected, 1 collected, 2 certified"),
        ({"rows_expected": 3}, "3 rows expected"),
        ({"rows_expected": 3, "rows_collected": 3}, "2 certified"),
    ],
)
@pytest.mark.parametrize("accept", Accept)
def test_a_certified_pass_that_does_not_follow_from_its_certificate_is_an_attack(
    changes: dict[str, object], reason: str, accept: Accept
) -> None:
    found = decided(report(*[(Ruling.PASS, Basis.CERTIFIED)] * 3, **changes), accept)
    assert (found.judgement, found.fault) == (Judgement.REJECT, Fault.INTEGRITY)
    assert reason in found.reason


def test_one_certified_gate_among_measured_ones_needs_its_certificate() -> None:
    says = [(Ruling.PASS, Basis.MEASURED), (Ruling.PASS, Basis.MEASURED), (Ruling.PASS, Basis.CERTIFIED)]
    assert decided(report(*says)).judgement is Judgement.LAND
    assert decided(report(*says, certificate=None)).judgement is Judgement.REJECT


def test_a_diagnosis_rejects_whatever_the_gates_say() -> None:
    diagnosis = Diagnosis(stage=None, fault=Fault.KERNEL, summary="does not build", next_step="read it")
    found = decided(report(*[(Ruling.PASS, Basis.MEASURED)] * 3, diagnosis=diagnosis))
    assert found == Decision(judgement=Judgement.REJECT, reason="does not build", fault=Fault.KERNEL)


def test_a_disproven_gate_is_charged_to_the_kernel_with_its_words() -> None:
    found = decided(report((Ruling.PASS, Basis.MEASURED), (Ruling.FAIL, Basis.MEASURED), None))
    assert found == Decision(judgement=Judgement.REJECT, reason="executed: said", fault=Fault.KERNEL)


def passed(gate: GateName, summary: str = "said") -> GateResult:
    return GateResult(gate=gate, ruling=Ruling.PASS, basis=Basis.MEASURED, summary=summary)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (None, "correctness claims to be measured and there are no raw records"),
        (measured(*map(passed, GateName), patch_sha256="b" * 64), "the measurements are about another patch"),
        (measured(*map(passed, ALL[:2])), "geomean claims 'said', its raw records say 'not_run, not run'"),
        (measured(*map(passed, ALL[:2]), passed(GateName.GEOMEAN, "measured 0.96")), "say 'pass, measured 0.96'"),
    ],
)
@pytest.mark.parametrize("accept", Accept)
def test_a_measured_pass_that_does_not_follow_from_raw_records_is_an_attack(
    records: Measured | None, reason: str, accept: Accept
) -> None:
    given = report(*[(Ruling.PASS, Basis.MEASURED)] * 3)
    found = decide(given, patch_sha256=PATCH, accept=accept, certifiable=ALL, measured=records)
    assert (found.judgement, found.fault) == (Judgement.REJECT, Fault.INTEGRITY)
    assert reason in found.reason


@pytest.mark.parametrize("claim", [None, *SAYS[1:4]])
def test_what_raw_records_disprove_is_rejected_whatever_the_report_claims(
    claim: tuple[Ruling, Basis | None] | None,
) -> None:
    slow = replace(passed(GateName.GEOMEAN, "measured 0.80"), ruling=Ruling.FAIL)
    records = measured(*map(passed, ALL[:2]), slow)
    given = report(claim, claim, claim)
    found = decide(given, patch_sha256=PATCH, accept=Accept.CERTIFIED, certifiable=ALL, measured=records)
    assert found == Decision(judgement=Judgement.REJECT, reason="geomean: measured 0.80", fault=Fault.KERNEL)


def test_measurements_finish_what_waited_for_a_gpu() -> None:
    records = measured(*map(passed, GateName))
    waiting = report(None, (Ruling.NOT_RUN, None), (Ruling.PASS, Basis.CERTIFIED))
    found = decide(waiting, patch_sha256=PATCH, accept=Accept.CERTIFIED, certifiable=ALL, measured=records)
    assert found.judgement is Judgement.LAND
    whole = with_measured(waiting, records)
    assert [gate.basis for gate in whole.gates] == [Basis.MEASURED] * 3


def test_a_measurement_that_failed_itself_does_not_undo_a_certificate() -> None:
    lost = replace(passed(GateName.GEOMEAN, "3 device records lost"), ruling=Ruling.INFRA)
    given = report(*[(Ruling.PASS, Basis.CERTIFIED)] * 3)
    for accept, expected in ((Accept.CERTIFIED, Judgement.LAND), (Accept.MEASURED, Judgement.AWAIT_GPU)):
        records = measured(*map(passed, ALL[:2]), lost)
        found = decide(given, patch_sha256=PATCH, accept=accept, certifiable=ALL, measured=records)
        assert found.judgement is expected

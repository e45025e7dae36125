"""What a gate report means: every combination of what three gates can say."""

import itertools
from dataclasses import replace

import pytest

from farm.acceptance import Decision, Judgement, decide
from farm.fault import Fault
from farm.gates import Basis, Certificate, GateName, GateReport, GateResult, RowProof, Ruling, SignatureProof
from farm.job import Accept
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


def decided(
    given: GateReport, accept: Accept = Accept.CERTIFIED, certifiable: tuple[GateName, ...] = ALL
) -> Decision:
    return decide(given, patch_sha256=PATCH, accept=accept, certifiable=certifiable)


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

"""What a gate report means for a job: land it, keep it for a GPU, or end it. Pure."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from farm.fault import Fault
from farm.gates import Basis, GateName, GateReport, GateResult, Ruling
from farm.job import Accept
from farm.measured.model import Measured


class Judgement(StrEnum):
    """What follows."""

    LAND = "land"  #: all three gates passed as asked for
    AWAIT_GPU = "await_gpu"  #: nothing failed, and something has to be measured
    REJECT = "reject"  #: a gate was disproven, or nothing could be judged
    REPEAT = "repeat"  #: the judging itself failed


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A judgement with its reason."""

    judgement: Judgement
    reason: str  #: one sentence
    fault: Fault | None = None  #: for REJECT and REPEAT


def decide(
    report: GateReport,
    *,
    patch_sha256: str,
    accept: Accept,
    certifiable: Collection[GateName],
    measured: Measured | None = None,
) -> Decision:
    """What the report means. Believes no summary: a certified pass is checked against its certificate.

    `measured` is what `farm.measured.ruling.rule` makes of the raw records, computed by the caller and never
    read from where the report came from. A measured pass in the report that it does not repeat is an attack;
    what it says itself counts whether or not the report knows of it.
    """
    if report.diagnosis is not None:
        return Decision(judgement=Judgement.REJECT, reason=report.diagnosis.summary, fault=report.diagnosis.fault)
    results = _results(report, measured)
    failed, unjudged = _first(results, Ruling.FAIL), _first(results, Ruling.INFRA)
    if failed is not None:
        return Decision(judgement=Judgement.REJECT, reason=failed, fault=Fault.KERNEL)
    if unjudged is not None:
        return Decision(judgement=Judgement.REPEAT, reason=unjudged, fault=Fault.INFRA)
    unproven = _unsound(report, patch_sha256, results) or _unfounded(report, patch_sha256, measured)
    if unproven is not None:
        return Decision(judgement=Judgement.REJECT, reason=unproven, fault=Fault.INTEGRITY)
    missing = [gate for gate in GateName if not _passed(results.get(gate), accept, gate in certifiable)]
    if missing:
        names = ", ".join(gate.value for gate in missing)
        return Decision(judgement=Judgement.AWAIT_GPU, reason=f"{names} not measured: a GPU worker finishes it")
    return Decision(judgement=Judgement.LAND, reason="all three gates passed")


def with_measured(report: GateReport, measured: Measured) -> GateReport:
    """The report with what the raw records say in it; a certified pass stays where measuring left a gate open."""
    results = _results(report, measured)
    return replace(report, gates=tuple(results[gate] for gate in GateName if gate in results))


def _results(report: GateReport, measured: Measured | None) -> dict[GateName, GateResult]:
    results = {result.gate: result for result in report.gates}
    for result in () if measured is None else measured.gates:
        known = results.get(result.gate)
        certified = known is not None and (known.ruling, known.basis) == (Ruling.PASS, Basis.CERTIFIED)
        refused = known is not None and known.ruling is Ruling.FAIL
        keep = result.ruling is Ruling.NOT_RUN or (certified and result.ruling is not Ruling.PASS) or refused
        if result.ruling is Ruling.FAIL or not keep:
            results[result.gate] = result
    return results


def _first(results: dict[GateName, GateResult], ruling: Ruling) -> str | None:
    """The first gate with this ruling and what it says, or None."""
    found = (results[gate] for gate in GateName if gate in results and results[gate].ruling is ruling)
    return next((f"{result.gate.value}: {result.summary}" for result in found), None)


def _passed(result: GateResult | None, accept: Accept, certifiable: bool) -> bool:
    if result is None or result.ruling is not Ruling.PASS:
        return False
    match result.basis:
        case Basis.MEASURED:
            return True
        case Basis.CERTIFIED:
            return accept is Accept.CERTIFIED and certifiable
        case None:
            return False


def _unsound(report: GateReport, patch_sha256: str, results: dict[GateName, GateResult]) -> str | None:
    """Why a certified pass does not follow from what the report holds, or None."""
    if not any(r.basis is Basis.CERTIFIED and r.ruling is Ruling.PASS for r in results.values()):
        return None
    certificate = report.certificate
    if certificate is None:
        return "a gate claims to be certified and there is no certificate"
    if certificate.patch_sha256 != patch_sha256:
        return "the certificate is about another patch"
    if not certificate.complete:
        return "the certificate is not complete"
    if not report.rows_expected == report.rows_collected == len(certificate.rows):
        return (
            f"{report.rows_expected} rows expected, {report.rows_collected} collected, "
            f"{len(certificate.rows)} certified"
        )
    return None


def _unfounded(report: GateReport, patch_sha256: str, measured: Measured | None) -> str | None:
    """Why a measured pass of the report does not follow from raw records, or None."""
    if measured is not None and measured.patch_sha256 != patch_sha256:
        return "the measurements are about another patch"
    for claim in report.gates:
        if claim.basis is not Basis.MEASURED or claim.ruling is not Ruling.PASS:
            continue
        if measured is None:
            return f"{claim.gate.value} claims to be measured and there are no raw records"
        found = measured.gate(claim.gate)
        if found != claim:
            said = f"{found.ruling.value}, {found.summary}"
            return f"{claim.gate.value} claims {claim.summary!r}, its raw records say {said!r}"
    return None

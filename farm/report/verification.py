"""What a gate report says, as findings: the first thing that differs, with its place."""

from farm.gates import GateReport, GateResult, Ruling
from farm.pipeline.stage import Finding

#: At most this many findings of one kind; a wrong kernel differs on every row.
MOST = 5


def failed_gates(report: GateReport) -> tuple[GateResult, ...]:
    """Gates that were disproven or could not be settled."""
    return tuple(r for r in report.gates if r.ruling in {Ruling.FAIL, Ruling.AMBIGUOUS, Ruling.INFRA})


def gate_findings(report: GateReport) -> tuple[Finding, ...]:
    """Differing signatures first (they are the cause), then differing rows, then missing rows."""
    found: list[Finding] = []
    if report.certificate is not None:
        differing = [proof for proof in report.certificate.signatures if not proof.same]
        for proof in differing[:MOST]:
            entry = proof.entry or "no entry"
            found.append(
                _finding(f"{proof.kernel} against {entry}, signature {proof.signature}: {proof.difference}")
            )
        for row in [row for row in report.certificate.rows if not row.same][:MOST]:
            found.append(_finding(f"row {row.key}: {row.difference}"))
    if report.rows_collected != report.rows_expected:
        message = f"{report.rows_collected} rows collected, {report.rows_expected} expected"
        found.append(_finding(message))
    return tuple(found)


def _finding(message: str) -> Finding:
    return Finding(file=None, line=None, column=None, construct=None, message=message, advice=None)

"""A run's report as a value; templates only lay it out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from farm.gates import GateResult
from farm.job import Job, JobState, Run
from farm.outcome import counts, exit_code
from farm.report.advice import state_advice
from farm.report.evidence import AttemptEvidence, gate_results
from farm.report.trace import Trace, build_trace
from farm.views import JobView, job_view


@dataclass(frozen=True, kw_only=True)
class ReportedJob:
    """One op's line, and its trace when it is not accepted."""

    job: JobView
    gates: tuple[GateResult, ...]
    rows_collected: int | None  #: of the target backend, by the gate box
    rows_expected: int | None  #: of the source backend
    rows_same: int | None  #: rows whose launches are proven equal
    signatures_same: int | None
    signatures_total: int | None
    attempts_made: int
    seconds: float | None  #: wall clock of all attempts together
    trace: Trace | None
    next_step: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of report.json."""

    run: str
    recipe: str
    repo: str
    push_to: str | None
    base: str
    accept: str
    created_at: float  #: seconds since the epoch, UTC; when the run was submitted
    written_at: float  #: seconds since the epoch, UTC
    exit_code: int
    counts: dict[str, int]  #: jobs by state
    versions: dict[str, str]  #: of the toolchain's parts
    jobs: tuple[ReportedJob, ...]
    kind: Literal["run-report"] = "run-report"
    schema: int = 1


def build_report(
    run: Run,
    jobs: Sequence[Job],
    attempts: Mapping[str, tuple[AttemptEvidence, ...]],
    *,
    traces: Mapping[str, Trace] = MappingProxyType({}),
    versions: Mapping[str, str],
    written_at: float,
) -> Report:
    """The report of a run; `attempts` and kept `traces` by job id, missing traces are built.

    Versions that the certificates name win over `versions`.
    """
    seen = dict(versions)
    for made in attempts.values():
        for attempt in made:
            if attempt.gates is not None and attempt.gates.certificate is not None:
                seen.update(attempt.gates.certificate.versions)
    return Report(
        run=run.id,
        recipe=run.recipe,
        repo=run.repo,
        push_to=run.push_to,
        base=run.base,
        accept=run.accept.value,
        created_at=run.created_at,
        written_at=written_at,
        exit_code=exit_code(jobs),
        counts=counts(jobs),
        versions=dict(sorted(seen.items())),
        jobs=tuple(_reported(run, job, attempts.get(job.id, ()), traces.get(job.id)) for job in jobs),
    )


def _reported(run: Run, job: Job, attempts: tuple[AttemptEvidence, ...], kept: Trace | None) -> ReportedJob:
    accepted = job.state is JobState.ACCEPTED
    trace = None if accepted else kept or build_trace(run, job, attempts)
    gates = next((a.gates for a in reversed(attempts) if a.gates is not None), None)
    proof = gates.certificate if gates else None
    measured = [a.seconds for a in attempts if a.seconds is not None]
    return ReportedJob(
        job=job_view(run, job),
        gates=gate_results(attempts),
        rows_collected=gates.rows_collected if gates else None,
        rows_expected=gates.rows_expected if gates else None,
        rows_same=sum(row.same for row in proof.rows) if proof else None,
        signatures_same=sum(s.same for s in proof.signatures) if proof else None,
        signatures_total=len(proof.signatures) if proof else None,
        attempts_made=len(attempts),
        seconds=sum(measured) if measured else None,
        trace=trace,
        next_step=trace.next_step if trace else state_advice(job),
    )

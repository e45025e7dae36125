"""The trace of a job that is not accepted: what, where, whose fault, evidence, next step.

`build_trace` only reorders what boxes, gates and steps said; it guesses nothing.
"""

from dataclasses import dataclass, replace
from typing import Literal

from farm.fault import Fault, Owner
from farm.job import Job, JobState, Run
from farm.orders import StageRecord
from farm.pipeline.stage import Finding, Stage
from farm.report.advice import fault_advice, state_advice
from farm.report.evidence import AttemptEvidence, gate_results
from farm.report.verification import failed_gates, gate_findings


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One fact that supports the diagnosis."""

    label: str  #: what it is, e.g. `validator kernel-rules`
    text: str  #: what it says


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One thing that was done, in order."""

    attempt: int  #: from 1
    what: str  #: e.g. `B-1 (program)`
    outcome: str  #: verdict or error, and one sentence
    seconds: float | None  #: wall clock


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The diagnosis of a job that is not accepted."""

    run: str
    job: str
    op: str
    recipe: str
    repo: str
    base: str  #: full commit id
    state: JobState
    attempt: int  #: the attempt it ended in; 0: none was made
    where: str  #: e.g. `stage B, visit 1`, `verifying`, `landing`
    stage: Stage | None  #: the pipeline stage that failed, if one did
    owner: Owner | None  #: whose part failed, when the stage said so
    fault: Fault | None  #: None for a job that waits or was cancelled
    summary: str  #: one sentence
    first_error: Finding | None  #: with its place, when something named one
    evidence: tuple[Evidence, ...]
    tried: tuple[Tried, ...]
    next_step: str  #: what a person should do
    reproduce: str  #: a command that does it again in one process
    kind: Literal["trace"] = "trace"
    schema: int = 1


@dataclass(frozen=True, kw_only=True)
class _End:
    """Where an attempt ended, before words are put around it."""

    where: str
    summary: str
    stage: Stage | None = None
    owner: Owner | None = None
    fault: Fault | None = None
    finding: Finding | None = None
    advice: str | None = None


def build_trace(run: Run, job: Job, attempts: tuple[AttemptEvidence, ...]) -> Trace:
    """The trace of `job`, from its attempts in order."""
    last = attempts[-1] if attempts else None
    end = _end(job, last)
    fault = job.fault or end.fault
    return Trace(
        run=run.id,
        job=job.id,
        op=job.op,
        recipe=run.recipe,
        repo=run.repo,
        base=run.base,
        state=job.state,
        attempt=job.attempt,
        where=end.where,
        stage=end.stage,
        owner=end.owner,
        fault=fault,
        summary=end.summary,
        first_error=end.finding,
        evidence=_evidence(attempts, last),
        tried=tuple(step for attempt in attempts for step in _tried(attempt)),
        next_step=_next_step(job, end, fault),
        reproduce=(
            f"farm one-shot {job.op} --repo {run.repo} --base {run.base} "
            f"--recipe {run.recipe} --accept {run.accept.value}"
        ),
    )


def _end(job: Job, last: AttemptEvidence | None) -> _End:
    """What ended the job, looked for from its last step backwards."""
    if last is not None:
        for found in (_end_by_error(last), _end_by_gates(last), _end_by_stage(last)):
            if found is not None:
                return found
    waiting = f" ({job.park_reason.value})" if job.park_reason else ""
    return _End(where=job.state.value + waiting, summary=job.summary or f"the job is {job.state.value}{waiting}")


def _end_by_error(last: AttemptEvidence) -> _End | None:
    """The step's error, unless the box that the step looked at says more about it."""
    error = last.error
    if error is None:
        return None
    if error.state in {JobState.RUNNING, JobState.CAPTURED} and last.result and last.result.diagnosis:
        return _end_by_stage(last)
    if error.state is JobState.VERIFYING and last.gates is not None:
        judged = _end_by_gates(last)
        if judged is not None:
            return replace(judged, fault=judged.fault or error.fault)
    return _End(where=error.state.value, summary=error.message, fault=error.fault, advice=error.next_step)


def _end_by_gates(last: AttemptEvidence) -> _End | None:
    report = last.gates
    if report is None:
        return None
    findings = gate_findings(report)
    if report.diagnosis is not None:
        diagnosis = report.diagnosis
        return _End(
            where=JobState.VERIFYING.value,
            summary=diagnosis.summary,
            stage=diagnosis.stage,
            fault=diagnosis.fault,
            finding=findings[0] if findings else None,
            advice=diagnosis.next_step,
        )
    failed = failed_gates(report)
    if not failed:
        return None
    return _End(
        where=f"{JobState.VERIFYING.value}, gate {failed[0].gate.value}",
        summary=f"{failed[0].gate.value}: {failed[0].summary}",
        finding=findings[0] if findings else None,
    )


def _end_by_stage(last: AttemptEvidence) -> _End | None:
    if last.result is None or last.result.diagnosis is None:
        return None
    diagnosis = last.result.diagnosis
    record = _failed_record(last.result.records, diagnosis.stage)
    findings = record.reply.findings if record else ()
    where = f"stage {record.stage.value}, visit {record.visit}" if record else JobState.RUNNING.value
    return _End(
        where=where,
        summary=diagnosis.summary,
        stage=diagnosis.stage,
        owner=record.reply.owner if record else None,
        fault=diagnosis.fault,
        finding=findings[0] if findings else None,
        advice=diagnosis.next_step,
    )


def _failed_record(records: tuple[StageRecord, ...], stage: Stage | None) -> StageRecord | None:
    return next((r for r in reversed(records) if r.stage is stage), None)


def _evidence(attempts: tuple[AttemptEvidence, ...], last: AttemptEvidence | None) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if last is None:
        return ()
    for record in last.result.records if last.result else ():
        for check in record.reply.validators:
            if check.exit_code != 0:
                label = f"validator {check.name} ({record.stage.value}-{record.visit})"
                found.append(Evidence(label=label, text=f"exit {check.exit_code}: {check.message}"))
        for finding in record.reply.findings[1:]:
            found.append(Evidence(label=f"also in {record.stage.value}-{record.visit}", text=describe(finding)))
    if last.gates is not None:
        report = last.gates
        for result in gate_results(attempts):
            found.append(
                Evidence(label=f"gate {result.gate.value}", text=f"{result.ruling.value}: {result.summary}")
            )
        rows = f"{report.rows_collected} of {report.rows_expected} expected"
        found.append(Evidence(label="rows collected", text=rows))
        found += [Evidence(label="proof", text=describe(f)) for f in gate_findings(report)]
    if last.error is not None and last.error.log_tail:
        found.append(Evidence(label="last lines of the box", text=last.error.log_tail))
    found += [Evidence(label="kept file", text=path) for path in last.artifacts]
    return tuple(found)


def _tried(attempt: AttemptEvidence) -> list[Tried]:
    steps = [
        Tried(
            attempt=attempt.number,
            what=f"{record.stage.value}-{record.visit} ({record.executor.value})",
            outcome=": ".join(part for part in (record.reply.verdict.value, record.reply.summary) if part),
            seconds=record.seconds,
        )
        for record in (attempt.result.records if attempt.result else ())
    ]
    if attempt.gates is not None:
        outcome = ", ".join(f"{r.gate.value} {r.ruling.value}" for r in attempt.gates.gates) or "not judged"
        steps.append(Tried(attempt=attempt.number, what="gates", outcome=outcome, seconds=None))
    if attempt.error is not None:
        outcome = f"{attempt.error.fault.value}: {attempt.error.message}"
        steps.append(Tried(attempt=attempt.number, what=attempt.error.state.value, outcome=outcome, seconds=None))
    return steps


def _next_step(job: Job, end: _End, fault: Fault | None) -> str:
    if end.advice:
        return end.advice
    if end.finding is not None and end.finding.advice:
        return end.finding.advice
    if fault is not None:
        return fault_advice(fault)
    return state_advice(job)


def describe(finding: Finding) -> str:
    """`file:line:column: message` with as much of the place as is known."""
    place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
    text = f"{place}: {finding.message}" if place else finding.message
    return f"{text} (`{finding.construct}`)" if finding.construct else text

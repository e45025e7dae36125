"""Views of runs and jobs, read from the ledger and the artifact store. Changes nothing."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from drivers.money import usage_view
from drivers.talk import transcript_view
from farm import codec
from farm.errors import UnknownJob, UnknownRun
from farm.events import Logged, Moved
from farm.gates import GateReport
from farm.job import FINAL, Job, JobState, Run
from farm.ledger import TRACE, Attempt, Ledger
from farm.orders import BoxResult
from farm.outcome import counts, exit_code, settled
from farm.report.evidence import GATES, LOG, RESULT, AttemptEvidence, StepError, gate_results
from farm.report.trace import Trace, build_trace
from farm.store import ArtifactStore
from farm.views import (
    DiagnosisView,
    EventView,
    JobDetailView,
    LogsView,
    RunView,
    StatusView,
    TranscriptView,
    UsageView,
    job_view,
)
from workers.livelogs import GATE_PREFIX, Part, printable

T = TypeVar("T")
#: The lines of the transcript of a job's attempt; see workers.gateway.transcripts.
Talk = Callable[[Job, int], Sequence[Mapping[str, Any]]]
#: Parts of the logs of a job's running box, beyond the offsets by name; see workers.livelogs.
Live = Callable[[Job, dict[str, int]], Sequence[Part]]


class Reader:
    """Answers questions about runs and jobs."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        store: ArtifactStore,
        reports: Path,
        live: Live = lambda _job, _seen: (),
        talk: Talk = lambda _job, _attempt: (),
    ) -> None:
        """`reports` is the folder that holds one folder a run; `live` reads the logs of running boxes.

        `talk` reads what was said in an attempt.
        """
        self._ledger = ledger
        self._store = store
        self._reports = reports
        self._live = live
        self._talk = talk

    def find_run(self, name: str | None) -> Run:
        """The run called so, or the newest when `name` is None. Raises UnknownRun."""
        if name is not None:
            return self._ledger.run(name)
        newest = self._ledger.runs(limit=1)
        if not newest:
            raise UnknownRun("there is no run yet; `farm submit` makes one")
        return newest[0]

    def find_job(self, name: str) -> Job:
        """The job with this id, or of this op in the newest run that has it. Raises UnknownJob."""
        try:
            return self._ledger.job(name)
        except UnknownJob:
            for run in self._ledger.runs():
                for job in self._ledger.jobs(run=run.id):
                    if job.op == name:
                        return job
            raise

    def run_view(self, run: Run) -> RunView:
        """A run with its jobs."""
        jobs = self._ledger.jobs(run=run.id)
        waits = self._ledger.waits([job.id for job in jobs])
        report = self.report_folder(run) / "report.html"
        return RunView(
            id=run.id,
            recipe=run.recipe,
            repo=run.repo,
            push_to=run.push_to,
            base=run.base,
            accept=run.accept,
            created_at=run.created_at,
            settled=settled(jobs, waits),
            exit_code=exit_code(jobs),
            counts=counts(jobs),
            jobs=tuple(job_view(run, job, waits.get(job.id)) for job in jobs),
            report=str(report) if report.exists() else None,
        )

    def status(self, *, limit: int) -> StatusView:
        """The latest runs."""
        return StatusView(runs=tuple(self.run_view(run) for run in self._ledger.runs(limit=limit)))

    def detail(self, job: Job) -> JobDetailView:
        """Everything that is shown about one job."""
        attempts = self.evidence(job)
        gates = next((a.gates for a in reversed(attempts) if a.gates is not None), None)
        proof = gates.certificate if gates else None
        return JobDetailView(
            job=job_view(self._ledger.run(job.run), job, self._ledger.waits([job.id]).get(job.id)),
            gates=gate_results(attempts),
            rows_collected=gates.rows_collected if gates else None,
            rows_expected=gates.rows_expected if gates else None,
            signatures_same=sum(s.same for s in proof.signatures) if proof else None,
            signatures_total=len(proof.signatures) if proof else None,
            events=tuple(event_view(logged) for logged in self._ledger.events(job=job.id)),
            artifacts=tuple(name for a in attempts for name in a.artifacts),
        )

    def diagnosis(self, job: Job) -> DiagnosisView:
        """The job's trace; an accepted job has none."""
        if job.state is JobState.ACCEPTED:
            return DiagnosisView(accepted=True, trace=None)
        return DiagnosisView(accepted=False, trace=self.trace(job))

    def trace(self, job: Job) -> Trace:
        """The trace that was kept when the job's last attempt ended, else one from what is known now."""
        if job.state in FINAL:
            for attempt in reversed(self._ledger.attempts(job.id)):
                if attempt.trace is not None:
                    return replace(self._load(Trace, attempt.trace), state=job.state)
        return build_trace(self._ledger.run(job.run), job, self.evidence(job))

    def logs(self, job: Job) -> LogsView:
        """The job's history, the kept logs of its attempts, and what its running box has written so far."""
        texts = [
            f"== attempt {attempt.number}: {name}\n{self._store.get(digest).decode('utf-8', 'replace')}"
            for attempt in self._ledger.attempts(job.id)
            for name, digest in self._ledger.artifacts(job.id, attempt=attempt.number).items()
            if name.endswith(LOG)
        ]
        texts += [
            f"== attempt {job.attempt}: {part.name}, so far\n{'...' if part.start else ''}{part.text}"
            for part in self._live(job, {})
        ]
        history = [event_line(event_view(logged)) for logged in self._ledger.events(job=job.id)]
        return LogsView(job=job.id, text="\n".join(["\n".join(history), *texts]).strip() + "\n")

    def follow(self, job: Job, seen: dict[str, int]) -> tuple[str, ...]:
        """What the boxes of the job's attempt have logged beyond `seen`, as lines; brings `seen` up to date.

        Of a box that has ended the rest comes from what was kept of it.
        """
        running = {JobState.RUNNING: "", JobState.VERIFYING: GATE_PREFIX}.get(job.state)
        lines: list[str] = []
        kept = self._ledger.artifacts(job.id, attempt=job.attempt) if job.attempt else {}
        rest = [
            Part(name=name, start=seen.get(name, 0), end=len(data), text=printable(data[seen.get(name, 0) :]))
            for name, digest in kept.items()
            if name.endswith(LOG) and (running is None or name.startswith(GATE_PREFIX) != (running == GATE_PREFIX))
            for data in [self._store.get(digest)]
        ]
        for part in (*rest, *self._live(job, seen)):
            if part.end > seen.get(part.name, 0):
                lines += [f"{part.name}: {line}" for line in part.text.splitlines()]
                seen[part.name] = part.end
        return tuple(lines)

    def usage(self, run: Run | None) -> UsageView:
        """What the model calls of a run, or of all, used and cost."""
        usages = self._ledger.usage(run=None if run is None else run.id)
        runs = {usage.run for usage in usages} if run is None else {run.id}
        jobs = [job for name in sorted(runs) for job in self._ledger.jobs(run=name)]
        budget = None if run is None else run.budget_micro_usd
        return usage_view(usages, jobs, run=None if run is None else run.id, budget_micro_usd=budget)

    def transcript(self, job: Job, stage: str | None) -> TranscriptView:
        """What a job's agents and the model said."""
        numbers = range(1, job.attempt + 1)
        return transcript_view(job.id, [(number, self._talk(job, number)) for number in numbers], stage)

    def jobs(self, run: Run) -> tuple[Job, ...]:
        """The run's jobs."""
        return self._ledger.jobs(run=run.id)

    def events(self, job: Job, *, after: int) -> tuple[Logged, ...]:
        """The job's events after a sequence number, oldest first."""
        return self._ledger.events(job=job.id, after=after)

    def evidence(self, job: Job) -> tuple[AttemptEvidence, ...]:
        """What is known about each attempt."""
        events = self._ledger.events(job=job.id)
        return tuple(self._attempt(job, attempt, events) for attempt in self._ledger.attempts(job.id))

    def report_folder(self, run: Run) -> Path:
        """Where the run's report lies, or will."""
        return self._reports / run.id

    def _attempt(self, job: Job, attempt: Attempt, events: tuple[Logged, ...]) -> AttemptEvidence:
        kept = self._ledger.artifacts(job.id, attempt=attempt.number)
        return AttemptEvidence(
            number=attempt.number,
            result=self._load(BoxResult, kept[RESULT]) if RESULT in kept else None,
            gates=self._load(GateReport, kept[GATES]) if GATES in kept else None,
            error=_step_error(attempt, events),
            artifacts=tuple(f"{name} sha256:{digest}" for name, digest in kept.items() if name != TRACE),
            seconds=None if attempt.ended_at is None else attempt.ended_at - attempt.started_at,
        )

    def _load(self, kind: type[T], digest: str) -> T:
        return codec.decode(kind, json.loads(self._store.get(digest)))


def _step_error(attempt: Attempt, events: tuple[Logged, ...]) -> StepError | None:
    """What ended a failed attempt: the ledger knows its fault, its summary and the state that it left."""
    if attempt.fault is None:
        return None
    moves = [e.event for e in events if e.attempt == attempt.number and isinstance(e.event, Moved)]
    left = [move.source for move in moves if move.to in {JobState.FAILED, JobState.QUEUED}]
    return StepError(
        state=left[-1] if left else JobState.PREPARING,
        fault=attempt.fault,
        message=attempt.summary or attempt.fault.value,
    )


def event_view(logged: Logged) -> EventView:
    """An event in words."""
    event = logged.event
    if isinstance(event, Moved):
        why = f": {event.summary}" if event.summary else ""
        detail = f"{event.source.value} -> {event.to.value}{why}"
    else:
        fields = {name: value for name, value in codec.encode(event).items() if name != "kind"}
        detail = ", ".join(f"{name} {value}" for name, value in fields.items() if value not in (None, ""))
    return EventView(at=logged.at, action=event.kind, detail=detail)


def event_line(event: EventView) -> str:
    """One line of a history."""
    at = datetime.fromtimestamp(event.at, tz=UTC).strftime("%H:%M:%S")
    return f"{at} {event.action} {event.detail}".rstrip()

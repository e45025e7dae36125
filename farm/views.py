"""The documents that `--json` prints. docs/cli-json.md is generated from here.

Every document has `kind` and `schema`. Within one schema version fields are only added.
"""

from dataclasses import dataclass
from typing import Literal

from farm.fault import Fault
from farm.gates import GateResult
from farm.job import Accept, Job, JobState, ParkReason, Run, WaitsFor
from farm.op import KernelSite, Op, Problem, TestSite
from farm.report.trace import Trace

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class OpView:
    """One operator of the target repo."""

    name: str  #: the op's name
    landed: bool  #: whether the repo has a target implementation
    rows: int | None  #: test rows per backend; null: not literal in the source, or not readable
    registered: tuple[str, ...]  #: names it is registered under
    source_files: tuple[str, ...]  #: files of the source implementation
    target_files: tuple[str, ...]  #: files of the landed target implementation
    kernels: tuple[KernelSite, ...]  #: kernel functions of the source implementation
    tests: tuple[TestSite, ...]  #: test functions that are parametrised by backend
    problems: tuple[Problem, ...] = ()  #: why it cannot be read, hence not be converted; empty: it can


@dataclass(frozen=True, kw_only=True)
class OpsView:
    """`farm ops`."""

    repo: str  #: as given
    base: str  #: full commit id
    recipe: str
    ops: tuple[OpView, ...]
    kind: Literal["ops"] = "ops"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class JobView:
    """One job in a table."""

    id: str  #: `<run>.<op>`
    op: str
    state: JobState
    attempt: int  #: 0 before the first
    attempts: int  #: most attempts it may use
    fault: Fault | None  #: of a failed job
    park_reason: ParkReason | None  #: of a parked job
    cancel_requested: bool
    summary: str | None  #: outcome or reason, one sentence
    commit: str | None  #: of an accepted job
    branch: str | None  #: of an accepted job
    updated_at: float  #: seconds since the epoch, UTC
    #: `running` and `verifying` jobs wait for a box, `queued` ones for a turn, `awaiting_gpu` ones for a GPU
    waits_for: WaitsFor | None = None


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run with its jobs: `farm submit`, `farm status RUN`."""

    id: str
    recipe: str
    repo: str
    push_to: str | None  #: null: pushed to `repo`
    base: str  #: full commit id
    accept: Accept
    created_at: float  #: seconds since the epoch, UTC
    settled: bool  #: nothing moves any more without something from outside
    exit_code: int  #: of a waiting command: 4 once a job failed or was cancelled, else 3 while one is not final
    counts: dict[str, int]  #: jobs by state
    jobs: tuple[JobView, ...]
    report: str | None  #: path of report.html, when written
    kind: Literal["run"] = "run"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class StatusView:
    """`farm status` without a run: the newest first."""

    runs: tuple[RunView, ...]
    kind: Literal["status"] = "status"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class EventView:
    """One line of a job's history."""

    at: float  #: seconds since the epoch, UTC
    action: str  #: what happened
    detail: str  #: in words


@dataclass(frozen=True, kw_only=True)
class JobDetailView:
    """`farm show JOB`."""

    job: JobView
    gates: tuple[GateResult, ...]  #: of the last judged attempt
    rows_collected: int | None  #: of the target backend
    rows_expected: int | None  #: of the source backend
    signatures_same: int | None  #: certificate: signatures with the same Tile IR
    signatures_total: int | None
    events: tuple[EventView, ...]
    artifacts: tuple[str, ...]  #: kept files
    kind: Literal["job"] = "job"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class DiagnosisView:
    """`farm diagnose JOB`."""

    accepted: bool  #: an accepted job has no trace
    trace: Trace | None
    kind: Literal["diagnosis"] = "diagnosis"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class LogsView:
    """`farm logs JOB`."""

    job: str
    text: str
    kind: Literal["logs"] = "logs"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class ChangedView:
    """`farm cancel`, `farm retry`, `farm budget`: the jobs that it concerned."""

    action: str  #: `cancel`, `retry` or `budget`
    jobs: tuple[str, ...]
    ended: tuple[str, ...] = ()  #: those of them that ended at once; a worker ends the others
    needs_up: bool = False  #: no worker runs: the others end at the next `farm up`
    kind: Literal["changed"] = "changed"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class ReportView:
    """`farm report RUN`: where the report lies."""

    run: str
    html: str
    markdown: str
    json: str
    kind: Literal["report"] = "report"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class UsageRowView:
    """Model calls, added up."""

    op: str  #: empty: of all ops
    stage: str  #: whose agent asked; empty: of all
    calls: int  #: that cost something
    broken: int  #: of those, answers that broke off and were asked for again
    input_tokens: int  #: neither read from nor written to the cache
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cost_micro_usd: int  #: millionths of a dollar


@dataclass(frozen=True, kw_only=True)
class UsageView:
    """`farm usage`."""

    run: str | None  #: null: of all runs
    budget_micro_usd: int | None  #: the run's own, millionths of a dollar; null: none
    rows: tuple[UsageRowView, ...]  #: by op and stage
    stages: tuple[UsageRowView, ...]  #: by stage
    total: UsageRowView
    accepted: int  #: ops that were accepted
    accepted_micro_usd: int | None  #: cost of all jobs for each accepted op; null: none was
    kind: Literal["usage"] = "usage"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class SaidView:
    """One thing that was said."""

    who: str  #: `system`, `tools`, `user`, `assistant`
    kind: str  #: `text`, `thinking`, `tool_use`, `tool_result`
    text: str  #: without secrets


@dataclass(frozen=True, kw_only=True)
class TalkView:
    """One model call."""

    attempt: int
    at: float  #: seconds since the epoch, UTC
    stage: str
    visit: int  #: of the stage, from 1
    repair: bool  #: a malformed reply was to be repaired
    step: int  #: number of the call in its conversation, from 1
    model: str
    outcome: str  #: `answered`, `refused`, `parked`, or `replayed` from what was paid for
    stop_reason: str | None  #: of the answer
    why: str | None  #: there is no answer
    tries: tuple[str, ...]  #: why earlier tries came to nothing
    micro_usd: int  #: of the last try
    said: tuple[SaidView, ...]  #: what is new in the question, and the answer


@dataclass(frozen=True, kw_only=True)
class TranscriptView:
    """`farm transcript JOB`."""

    job: str
    calls: tuple[TalkView, ...]
    kind: Literal["transcript"] = "transcript"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class CheckView:
    """One check of `farm doctor`."""

    name: str
    level: Literal["ok", "warning", "error"]  #: an error keeps jobs from running
    detail: str  #: what was found
    next_step: str | None  #: what to do about it


@dataclass(frozen=True, kw_only=True)
class DoctorView:
    """`farm doctor`."""

    healthy: bool  #: no check is an error
    checks: tuple[CheckView, ...]
    kind: Literal["doctor"] = "doctor"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class RecipeCheckView:
    """One recipe and its mistakes."""

    recipe: str  #: name or path
    problems: tuple[str, ...]  #: all of them; empty: it may be used


@dataclass(frozen=True, kw_only=True)
class RecipeChecksView:
    """`farm recipe check`."""

    recipes: tuple[RecipeCheckView, ...]
    kind: Literal["recipe-checks"] = "recipe-checks"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class ServiceView:
    """`farm up`, `farm down`: the embedded farm."""

    running: bool
    state_folder: str
    workers: int  #: tasks at a time
    gateway: bool = False  #: agents can ask a model
    jobs_left: tuple[str, ...] = ()  #: `farm down`: jobs that rest where they are until the next `farm up`
    boxes_left: tuple[str, ...] = ()  #: `farm down`: boxes that run on; the next `farm up` adopts them
    kind: Literal["service"] = "service"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class ToolchainView:
    """`farm toolchain status`, `farm toolchain install`."""

    path: str
    installed: bool
    digest: str | None
    versions: dict[str, str]  #: of its parts
    kind: Literal["toolchain"] = "toolchain"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class BundleSubjectView:
    """One implementation of a bundle."""

    id: str  #: job id, or `judge.<op>`
    op: str
    base: str  #: full commit id
    violations: tuple[str, ...]  #: what a landed implementation does beyond its change set


@dataclass(frozen=True, kw_only=True)
class BundleView:
    """`farm bundle`."""

    folder: str
    digest: str  #: sha256 of its manifest
    gpu: str  #: architecture
    bytes: int  #: of all its files
    subjects: tuple[BundleSubjectView, ...]
    kind: Literal["bundle"] = "bundle"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class ImportedView:
    """What the raw records of one implementation say, on one kind of machine."""

    subject: str  #: job id, or `judge.<op>`
    op: str
    gpu: str  #: the device's name
    passed: bool  #: all three gates
    gates: tuple[GateResult, ...]
    rows_expected: int  #: of the source backend
    rows_collected: int  #: of those, by the target backend
    low: float | None  #: speedup, 95 % interval; None: not measured
    ratio: float | None
    high: float | None
    flags: int  #: things that decide nothing and that a person should look at
    state: JobState | None  #: of the job after the import; None: it is no job of this farm
    summary: str | None  #: the job's, one sentence
    commit: str | None
    branch: str | None


@dataclass(frozen=True, kw_only=True)
class ImportView:
    """`farm import`."""

    subjects: tuple[ImportedView, ...]
    incomplete: tuple[str, ...]  #: parts that did not come to their end, with the reason
    notes: tuple[str, ...]  #: what the runner said about the machine
    exit_code: int  #: 0 all passed (jobs: landed), 4 something failed, 3 something is still open
    kind: Literal["import"] = "import"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class ReplayView:
    """An evidence's subject, run again on this machine."""

    results: str  #: folder with what was recorded
    gpu: str  #: name as the driver gives it
    agrees: bool  #: every gate rules the same, and the geomeans' intervals overlap
    differences: tuple[str, ...]  #: from the evidence, a sentence each
    notes: tuple[str, ...]  #: what could not be compared
    gates: tuple[GateResult, ...]  #: as ruled now
    low: float | None  #: of the geomean now; null: not measured
    ratio: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class VerifyView:
    """`farm verify`."""

    what: str  #: full commit id, or the folder
    proven: bool  #: the decision to land follows from the evidence, and nothing of it was altered
    decision: str  #: what follows from the evidence, as recomputed
    problems: tuple[str, ...]  #: why it proves nothing: `file: what`
    gates: tuple[GateResult, ...]  #: as recomputed from raw records; empty without such
    replay: ReplayView | None = None  #: with --replay, of what is proven
    kind: Literal["verify"] = "verify"
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class ErrorView:
    """On stdout in place of the document, when a command with --json cannot do its work."""

    error: str  #: class of the error
    message: str  #: with the next step
    exit_code: int
    kind: Literal["error"] = "error"
    schema: int = SCHEMA


#: Every document that a command prints.
@dataclass(frozen=True, kw_only=True)
class AttackView:
    """One cheat and its honest twin."""

    name: str
    what: str  #: the cheat, in a sentence
    place: str  #: `cpu`: run here; `records`: on records as a GPU's collector gives them; `files`
    refused: bool  #: the cheat was refused for what it is
    refused_by: str | None  #: `change set`, `leak scan`, a gate, `results` or `evidence`; null: accepted
    reason: str | None  #: in the words of who refused it
    honest_accepted: bool  #: the twin was accepted
    honest_reason: str | None  #: why it was not
    seconds: float  #: wall clock of both; twins that are equal are judged once


@dataclass(frozen=True, kw_only=True)
class AttacksView:
    """`farm selftest attacks`."""

    attacks: tuple[AttackView, ...]
    refused: int  #: cheats that were refused for what they are
    honest_accepted: int  #: twins that were accepted
    total: int  #: of either
    seconds: float  #: wall clock
    kind: Literal["attacks"] = "attacks"
    schema: int = SCHEMA

    @property
    def whole(self) -> bool:
        """Whether no cheat was accepted and no twin refused."""
        return self.refused == self.honest_accepted == self.total


@dataclass(frozen=True, kw_only=True)
class ScenarioView:
    """One scenario: what a model would say is played, the farm is real."""

    name: str
    what: str  #: in a sentence
    jobs: int
    stages: tuple[str, ...]  #: replies of the first job, in order: `B-1 agent COMPILED`
    requests: int  #: that the model server saw
    answers: int  #: whole ones that were paid for
    tokens: dict[str, int]  #: of all answers, by class
    micro_usd: int  #: what they would cost, millionths of a dollar
    transitions: int  #: of all jobs
    seconds: float  #: wall clock
    problems: tuple[str, ...]  #: what is not as it must be


@dataclass(frozen=True, kw_only=True)
class ScenariosView:
    """`farm selftest scenarios`."""

    scenarios: tuple[ScenarioView, ...]
    as_expected: int
    total: int
    seconds: float  #: wall clock
    kind: Literal["scenarios"] = "scenarios"
    schema: int = SCHEMA


DOCUMENTS = (
    OpsView,
    RunView,
    StatusView,
    JobDetailView,
    DiagnosisView,
    LogsView,
    ChangedView,
    ReportView,
    DoctorView,
    RecipeChecksView,
    ServiceView,
    ToolchainView,
    BundleView,
    ImportView,
    VerifyView,
    AttacksView,
    UsageView,
    TranscriptView,
    ScenariosView,
    ErrorView,
)


def op_view(op: Op) -> OpView:
    """An op as `farm ops` shows it; rows are the sum over its tests, None when one is not literal."""
    counts = [test.rows for test in op.tests]
    known = [count for count in counts if count is not None]
    return OpView(
        name=op.name,
        landed=op.landed,
        rows=sum(known) if len(known) == len(counts) and not op.problems else None,
        registered=op.registered,
        source_files=op.source_files,
        target_files=op.target_files,
        kernels=op.kernels,
        tests=op.tests,
        problems=op.problems,
    )


def job_view(run: Run, job: Job, waits_for: WaitsFor | None = None) -> JobView:
    """A job as tables show it."""
    return JobView(
        id=job.id,
        op=job.op,
        state=job.state,
        attempt=job.attempt,
        attempts=run.attempts,
        fault=job.fault,
        park_reason=job.park_reason,
        cancel_requested=job.cancel_requested,
        summary=job.summary,
        commit=job.commit,
        branch=job.branch,
        updated_at=job.updated_at,
        waits_for=waits_for,
    )

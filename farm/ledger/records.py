"""What goes into the ledger with a transition and what comes out of it beside runs and jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from farm.events import Event
from farm.fault import Fault
from farm.gates import GateResult
from farm.job import Job, JobState, ParkReason, Run, WaitsFor
from farm.pipeline.stage import Stage

#: Name of the artifact that is an attempt's trace; its digest is kept in the attempt's row.
TRACE = "trace.json"


class Charge(StrEnum):
    """What a transition uses up."""

    NOTHING = "nothing"  #: it is no failure
    ATTEMPT = "attempt"  #: the attempt ends here
    TRANSIENT = "transient"  #: one transient retry


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is written together with a transition, or without one while a job waits."""

    summary: str | None = None  #: one sentence for tables
    fault: Fault | None = None  #: of a failure
    charge: Charge = Charge.NOTHING
    park_reason: ParkReason | None = None  #: needed for PARKED
    commit: str | None = None  #: needed for ACCEPTED
    branch: str | None = None  #: the commit's branch
    after_s: float = 0.0  #: the next step is due this much later
    waits: WaitsFor | None = None  #: what it waits for in the state that it has then
    artifacts: Mapping[str, str] = field(default_factory=dict)  #: name -> sha256, of the current attempt
    gates: tuple[GateResult, ...] = ()
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A lease as it was granted."""

    job: Job  #: as of the acquisition; `job.fence` is the lease's fence
    losses: int  #: how many holders in a row vanished before this one


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt of a job."""

    job: str
    number: int  #: from 1
    started_at: float  #: seconds since the epoch, UTC
    ended_at: float | None  #: None while it goes on
    fault: Fault | None
    summary: str | None
    trace: str | None  #: sha256 of its trace in the artifact store


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """A run and how many of its jobs are in which state."""

    run: Run
    counts: dict[JobState, int]  #: states that have jobs only
    updated_at: float  #: last change of any job, seconds since the epoch, UTC


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens and cost of one model call, as its raw answer reports them."""

    request: str  #: the API's request id; counted once
    run: str
    job: str
    op: str
    attempt: int
    stage: Stage
    visit: int  #: of the stage, from 1
    step: int  #: number of the call in the visit, from 1
    model: str
    at: float  #: seconds since the epoch, UTC
    input_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cost_micro_usd: int  #: millionths of a dollar, rounded up
    prices: str  #: version of the price table
    whole: bool = True  #: False: the answer broke off, and this is what it had reported until then


@dataclass(frozen=True, kw_only=True)
class JobRef:
    """In whose name somebody asks the gateway."""

    run: str
    job: str
    op: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Most that model calls may cost, millionths of a dollar; None: no limit. A run's own is in its row."""

    job: int | None = None
    run: int | None = None
    day: int | None = None  #: of all runs, from midnight UTC


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Money that is kept for one call under way."""

    id: str
    micro_usd: int
    until: float  #: void after this time, seconds since the epoch


class Scope(StrEnum):
    """What a budget is for."""

    JOB = "job"  #: one job
    RUN = "run"  #: all jobs of a run
    DAY = "day"  #: all runs, from midnight UTC


@dataclass(frozen=True, kw_only=True)
class BudgetReached:
    """There is not enough left for a call."""

    scope: Scope
    limit: int  #: millionths of a dollar
    spent: int  #: settled
    reserved: int  #: kept for calls under way
    fits_later: bool  #: it would fit if the calls under way cost nothing: ask again


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer that was paid for."""

    question: str  #: digest of who asked what at which step
    sha256: str  #: of its bytes in the artifact store
    request: str  #: the API's request id

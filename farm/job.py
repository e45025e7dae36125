"""Runs, jobs and the states a job moves through. The transition table is data; tests enumerate it."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from farm.fault import Fault
from farm.pipeline.stage import ExecutorKind


class JobState(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"  #: waits for a worker
    PREPARING = "preparing"  #: export, bare base, workspace, leak scan
    RUNNING = "running"  #: the pipeline's box works; workers only poll
    CAPTURED = "captured"  #: the patch is in the artifact store
    VERIFYING = "verifying"  #: the gates judge the patch in a box of their own
    AWAITING_GPU = "awaiting_gpu"  #: everything that needs no GPU is done; a GPU worker finishes it
    LANDING = "landing"  #: an accepted patch is being put on its branch
    PARKED = "parked"  #: waits for something outside; returns to the state it left
    ACCEPTED = "accepted"  #: a commit is on its branch
    FAILED = "failed"  #: ended with a trace
    CANCELLED = "cancelled"  #: ended by request


FINAL = frozenset({JobState.ACCEPTED, JobState.FAILED, JobState.CANCELLED})
#: States in which nothing moves until something outside changes.
WAITING = frozenset({JobState.AWAITING_GPU, JobState.PARKED})


class WaitsFor(StrEnum):
    """What a job waits for inside the farm, without leaving its state."""

    TURN = "turn"  #: so many jobs are at work that it is not prepared yet
    BOX = "box"  #: as many boxes run as may
    GPU = "gpu"  #: every GPU has a job


_FORWARD = {
    JobState.QUEUED: {JobState.PREPARING},
    JobState.PREPARING: {JobState.RUNNING},
    JobState.RUNNING: {JobState.CAPTURED},
    JobState.CAPTURED: {JobState.VERIFYING},
    JobState.VERIFYING: {JobState.LANDING, JobState.AWAITING_GPU},
    JobState.AWAITING_GPU: {JobState.VERIFYING},
    JobState.LANDING: {JobState.ACCEPTED},
    JobState.PARKED: {
        JobState.QUEUED,
        JobState.PREPARING,
        JobState.RUNNING,
        JobState.CAPTURED,
        JobState.VERIFYING,
        JobState.AWAITING_GPU,
        JobState.LANDING,
    },
}
_RETRYABLE = {JobState.PREPARING, JobState.RUNNING, JobState.CAPTURED, JobState.VERIFYING, JobState.LANDING}


def _table() -> dict[JobState, frozenset[JobState]]:
    table: dict[JobState, frozenset[JobState]] = {}
    for state in JobState:
        if state in FINAL:
            table[state] = frozenset()
            continue
        targets = set(_FORWARD[state]) | {JobState.CANCELLED}
        if state is not JobState.PARKED:
            targets.add(JobState.PARKED)
        if state in _RETRYABLE:
            targets |= {JobState.QUEUED, JobState.FAILED}
        table[state] = frozenset(targets)
    return table


#: state -> states it may move to. A PARKED job additionally only returns to the state it left.
TRANSITIONS: dict[JobState, frozenset[JobState]] = _table()


class Accept(StrEnum):
    """What counts as proof before a commit."""

    MEASURED = "measured"  #: all three gates measured on a GPU
    CERTIFIED = "certified"  #: certificates that need no GPU; lands under a prefix of its own


class ParkReason(StrEnum):
    """Why a job waits for something outside."""

    MODEL = "model"  #: the model API stays overloaded
    BUDGET = "budget"  #: the run's budget is spent
    DISK = "disk"  #: too little free space
    BROKER = "broker"  #: Redis does not answer
    ENGINE = "engine"  #: the container engine does not answer
    GPU_LOST = "gpu_lost"  #: a GPU vanished during a gate


@dataclass(frozen=True, kw_only=True)
class Run:
    """One `farm submit`: a set of jobs with one recipe, one base commit and one budget."""

    id: str  #: e.g. r-20261130-041500-3f2a
    recipe: str  #: name of the recipe
    repo: str  #: URL, path or `builtin:NAME` of the target repo
    push_to: str | None  #: where branches are pushed; None: to `repo`
    base: str  #: full commit id of the base
    accept: Accept  #: what counts as proof
    attempts: int  #: most attempts a job may use
    created_at: float  #: seconds since the epoch, UTC
    executors: ExecutorKind | None = None  #: who performs every stage; None: as the recipe says
    budget_micro_usd: int | None = (
        None  #: most that its model calls may cost, millionths of a dollar; None: no own limit
    )


@dataclass(frozen=True, kw_only=True)
class Job:
    """Convert one op in one run."""

    id: str  #: `<run>.<op>`
    run: str  #: the run's id
    op: str  #: the operator's name
    state: JobState  #: where it is
    attempt: int  #: number of the attempt it is in, from 1; 0 before the first
    transients: int  #: transient retries used
    fence: int  #: grows at every lease acquisition
    cancel_requested: bool  #: a stored fact, read before start and at every poll
    parked_from: JobState | None  #: the state a PARKED job left
    park_reason: ParkReason | None  #: why it is parked
    fault: Fault | None  #: what a FAILED job was charged to
    summary: str | None  #: one sentence for tables: outcome or reason
    commit: str | None  #: commit id of an ACCEPTED job
    branch: str | None  #: its branch
    updated_at: float  #: seconds since the epoch, UTC

    def evolve(self, **changes: Any) -> "Job":
        """A copy with some fields replaced."""
        return replace(self, **changes)

    def log_context(self) -> dict[str, Any]:
        """Fields that every log line about this job carries."""
        return {"run": self.run, "job": self.id, "op": self.op, "attempt": self.attempt, "state": self.state}

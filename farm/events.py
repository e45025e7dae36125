"""What happened to a job, as small typed records; the ledger keeps them in order.

`kind` is also the `action` of the log line that goes with an event.
"""

import json
from dataclasses import dataclass
from typing import Literal

from farm.codec import encode
from farm.fault import Fault, Owner
from farm.gates import Basis, GateName, Ruling
from farm.job import JobState
from farm.orders import Purpose
from farm.pipeline.stage import ExecutorKind, Stage, Verdict


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """The job was put into the ledger."""

    kind: Literal["submitted"] = "submitted"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """The job went from one state to another."""

    source: JobState
    to: JobState
    fence: int  #: of the lease that wrote it
    summary: str | None  #: why, when there is something to say
    kind: Literal["moved"] = "moved"


@dataclass(frozen=True, kw_only=True)
class AttemptStarted:
    """A new attempt began."""

    number: int  #: from 1
    kind: Literal["attempt_started"] = "attempt_started"


@dataclass(frozen=True, kw_only=True)
class AttemptEnded:
    """An attempt ended without a commit."""

    number: int  #: from 1
    fault: Fault
    summary: str
    trace: str | None  #: sha256 of its trace in the artifact store
    kind: Literal["attempt_ended"] = "attempt_ended"


@dataclass(frozen=True, kw_only=True)
class TransientRetry:
    """The attempt is tried again without being counted."""

    fault: Fault
    summary: str
    used: int  #: transient retries used so far, this one included
    kind: Literal["transient_retry"] = "transient_retry"


@dataclass(frozen=True, kw_only=True)
class LeaseLost:
    """A worker's lease ran out before it gave it back."""

    owner: str  #: who held it
    fence: int  #: the fence it held
    kind: Literal["lease_lost"] = "lease_lost"


@dataclass(frozen=True, kw_only=True)
class CancelRequested:
    """Somebody asked for the job to be cancelled."""

    kind: Literal["cancel_requested"] = "cancel_requested"


@dataclass(frozen=True, kw_only=True)
class BoxStarted:
    """A box was created for the job."""

    name: str  #: the box's deterministic name
    purpose: Purpose
    kind: Literal["box_started"] = "box_started"


@dataclass(frozen=True, kw_only=True)
class BoxEnded:
    """A box was seen to have stopped."""

    name: str
    exit_code: int | None  #: None: the box vanished
    oom_killed: bool
    kind: Literal["box_ended"] = "box_ended"


@dataclass(frozen=True, kw_only=True)
class StageEnded:
    """A stage of the pipeline gave its reply."""

    box: str  #: name of the box it ran in
    stage: Stage
    visit: int  #: from 1
    executor: ExecutorKind
    verdict: Verdict
    owner: Owner | None
    seconds: float  #: wall clock
    summary: str
    malformed: str | None = None  #: why the reply could not be read
    contradiction: str | None = None  #: what was claimed against the validators that we ran
    calls: int = 0  #: model calls of the visit, a repair's included
    tokens: int = 0  #: tokens read and written by them
    kind: Literal["stage_ended"] = "stage_ended"


@dataclass(frozen=True, kw_only=True)
class GateRuled:
    """A gate gave its ruling."""

    box: str  #: name of the box it ran in
    gate: GateName
    ruling: Ruling
    basis: Basis | None
    summary: str
    kind: Literal["gate_ruled"] = "gate_ruled"


@dataclass(frozen=True, kw_only=True)
class Landed:
    """A commit was pushed."""

    branch: str
    commit: str  #: full commit id
    kind: Literal["landed"] = "landed"


Event = (
    Submitted
    | Moved
    | AttemptStarted
    | AttemptEnded
    | TransientRetry
    | LeaseLost
    | CancelRequested
    | BoxStarted
    | BoxEnded
    | StageEnded
    | GateRuled
    | Landed
)


@dataclass(frozen=True, kw_only=True)
class Logged:
    """An event with its place in the ledger."""

    seq: int  #: grows with every event of the ledger
    at: float  #: seconds since the epoch, UTC
    run: str
    job: str
    attempt: int  #: the job's attempt at that time
    event: Event


def once_key(event: Event) -> str | None:
    """A key under which a job logs the event only once, or None when it may repeat.

    What is read from a box is read at every poll; its key makes reporting it again harmless.
    """
    match event:
        case BoxStarted() | BoxEnded():
            return f"{event.kind}:{event.name}"
        case StageEnded():
            unread = ":malformed" if event.malformed else ""
            return f"{event.kind}:{event.box}:{event.stage}:{event.visit}{unread}"
        case GateRuled():
            return f"{event.kind}:{event.box}:{event.gate}"
        case Landed():
            return f"{event.kind}:{event.branch}:{event.commit}"
        case _:
            return None


def line(logged: Logged) -> str:
    """The event as one line of JSON, without its end of line."""
    return json.dumps(encode(logged), sort_keys=True, ensure_ascii=False)

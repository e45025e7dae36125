"""The seam between tasks and a conversion: what a step may answer, and what a spine can do."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from farm.errors import ConfigurationError
from farm.events import Event
from farm.fault import Fault
from farm.gates import GateResult
from farm.job import Job, JobState, ParkReason, WaitsFor
from farm.ledger import Ledger
from farm.pipeline.stage import ExecutorKind, Stage
from farm.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Notes:
    """What a step found and the ledger should keep, whatever the step's outcome."""

    artifacts: Mapping[str, str] = field(default_factory=dict)  #: name -> sha256 in the artifact store
    gates: tuple[GateResult, ...] = ()
    events: tuple[Event, ...] = ()  #: those with a once-key may be reported again
    summary: str | None = None  #: one sentence for tables
    commit: str | None = None  #: with Advance(ACCEPTED)
    branch: str | None = None  #: the commit's branch


@dataclass(frozen=True, kw_only=True)
class Advance:
    """The state's work is done; for a PARKED job: its reason is gone."""

    to: JobState  #: one of the table's states, not CANCELLED, FAILED or PARKED
    notes: Notes = field(default_factory=Notes)
    waits: WaitsFor | None = None  #: what of the farm's own it waits for there


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Nothing to do before `after_s`; ask again then."""

    after_s: float  #: seconds
    notes: Notes = field(default_factory=Notes)
    waits: WaitsFor | None = None  #: what of the farm's own it waits for
    first: str | None = None  #: a job that may have it now and comes before this one: it is asked next


@dataclass(frozen=True, kw_only=True)
class Park:
    """Something outside is missing; the job returns to this state when it is back."""

    reason: ParkReason
    summary: str  #: one sentence
    notes: Notes = field(default_factory=Notes)


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The attempt failed; `farm.retry` decides what follows, `abandon` writes the trace.

    In a state that the table does not let fail (QUEUED, AWAITING_GPU, PARKED) the job moves on to
    the state that can, and the failure is expected to show there again.
    """

    fault: Fault
    summary: str  #: one sentence
    notes: Notes = field(default_factory=Notes)
    final: bool = False  #: repeating the attempt cannot help, whatever the fault allows
    next_step: str | None = None  #: what a person should do, when the failure knows better than its fault


StepOutcome = Advance | Wait | Park | Failed


class Hold(Protocol):
    """The lease under which a step runs; heartbeats renew it meanwhile."""

    @property
    def fence(self) -> int:
        """The lease's fence."""

    def check(self) -> None:
        """Renew the lease. Raises StaleFence when another worker has the job: call it before a push."""


class Spine(Protocol):
    """Performs the steps of a job's life. Steps are short, and repeated after a crash: get-or-create."""

    def step(self, job: Job, hold: Hold) -> StepOutcome:
        """Do what the job's state asks for now, for every state that is not final.

        RUNNING and VERIFYING start their box if there is none, look at it, and return Wait or the end.
        AWAITING_GPU and PARKED return Wait until a GPU, or the missing thing, is there. FarmErrors
        that it raises become Park (engine, disk) or Failed with the error's fault.
        """

    def abandon(self, job: Job, failure: Failed | None) -> Mapping[str, str]:
        """Remove the attempt's boxes, keep their logs; after a failure also write the attempt's trace.

        Returns artifacts by name; the trace is `farm.ledger.TRACE`. `failure` None: cancelled.
        Called before the transition is written, hence again after a crash: what the step needs to fail
        in the same way stays until `forget`.
        """

    def forget(self, job: Job) -> None:
        """Remove what the job keeps on this host; it has become final. Lost in a crash: see `reap`."""

    def executors(self, job: Job, attempt: int) -> Mapping[Stage, ExecutorKind]:
        """Who performs which stage in that attempt."""

    def reap(self, lookup: Callable[[str], Job | None]) -> int:
        """Remove boxes whose job is final or unknown, or has moved on to a later attempt; how many.

        What final and unknown jobs keep on this host is removed as well.
        List the boxes first and look their jobs up then: a box is never older than its job's row.
        """


class Listener(Protocol):
    """Is told about transitions. What it raises is logged and never concerns the job."""

    def moving(self, job: Job, to: JobState) -> None:
        """The transition is about to be written."""

    def moved(self, job: Job, source: JobState) -> None:
        """The transition is written; `job` is as it is now."""


SpineFactory = Callable[[Settings, Ledger], Spine]
ListenerFactory = Callable[[Settings, Ledger], Listener]


def named(path: str) -> Callable[[Settings, Ledger], Any]:
    """The factory called `module:function`. Raises ConfigurationError when there is none."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"no factory {path!r}: {error}; correct [worker] in farm.toml") from error
    if not callable(found):
        raise ConfigurationError(f"{path!r} is no function; correct [worker] in farm.toml")
    factory: Callable[[Settings, Ledger], Any] = found
    return factory

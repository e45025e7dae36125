"""One hop of a job: take the lease, do the state's step, write the transition, say what follows.

`advance` is the whole of it and knows no Celery; `register` makes the tasks that call it.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, assert_never

from celery import Celery

from farm.errors import EngineUnavailable, FarmError, NoSpace, StaleFence
from farm.fault import Fault
from farm.job import FINAL, TRANSITIONS, WAITING, Job, JobState, ParkReason
from farm.ledger import Change, Charge, Ledger
from farm.logs import Action, context
from farm.retry import After, Counts, Decision, decide, same_inputs
from workers.leases import HeldLease, leased
from workers.reconciler import REAP
from workers.runtime import Runtime
from workers.spine import Advance, Failed, Listener, Notes, Park, StepOutcome, Wait

_log = logging.getLogger(__name__)


class Due(NamedTuple):
    """A message to send."""

    job: Job  #: as it was written
    after_s: float  #: seconds from now
    first: str | None = None  #: a job whose step this hand should take before, see Wait


def task_name(state: JobState) -> str:
    """The task that takes the steps of a job in this state."""
    match state:
        case JobState.QUEUED | JobState.PREPARING | JobState.PARKED:
            return "prepare"
        case JobState.RUNNING:
            return "poll"
        case JobState.CAPTURED:
            return "capture"
        case JobState.VERIFYING | JobState.AWAITING_GPU:
            return "verify"
        case JobState.LANDING:
            return "land"
        case JobState.ACCEPTED | JobState.FAILED | JobState.CANCELLED:
            raise ValueError(f"nothing is left to do for a job that is {state}")
        case _:
            assert_never(state)


#: Names of all tasks that advance a job.
TASKS = frozenset(task_name(state) for state in JobState if state not in FINAL)


def register(app: Celery, runtime: Runtime, follow: Callable[[Job, float], None]) -> None:
    """Make the tasks of an app; `follow(job, after_s)` enqueues a job's next one that is not due at once."""

    def hop(job_id: str) -> None:
        due = advance(runtime, job_id)
        if due is not None and due.first is not None:
            # What is free belongs to a job that waits longer: this hand goes on with that one.
            follow(due.job, due.after_s)
            runtime.ledger.wake(due.first)
            due = advance(runtime, due.first)
        # A step that is due at once is taken by the same hand, under a lease of its own.
        while due is not None and due.after_s <= 0:
            due = advance(runtime, due.job.id)
        if due is not None:
            follow(due.job, due.after_s)

    def reap() -> None:
        removed = runtime.spine.reap(_lookup(runtime.ledger))
        if removed:
            _log.info("removed %d orphan boxes", removed, extra=context(Action.REAPED, removed=removed))

    for name in sorted(TASKS):
        app.task(hop, name=name, shared=False)
    app.task(reap, name=REAP, shared=False)


def advance(runtime: Runtime, job_id: str) -> Due | None:
    """Take one step of a job. When its next one is due, or None when no message is needed."""
    ttl_s = runtime.settings.worker.lease_s
    with leased(runtime.ledger, job_id, runtime.owner, ttl_s=ttl_s) as held:
        if held is None:
            _log.debug("nothing to do", extra=context(Action.STEP_SKIPPED, subject=job_id))
            return None
        job = held.grant.job
        try:
            due = _Hop(runtime, held).run()
        except StaleFence as error:
            _log.warning("%s", error, extra=context(Action.FENCE_STALE, job))
            return None
        _log.info("%s", job.state, extra=context(Action.STEP_TAKEN, job, fence=held.fence))
        return due


class _Hop:
    """One step under one lease."""

    def __init__(self, runtime: Runtime, held: HeldLease) -> None:
        self._runtime = runtime
        self._ledger = runtime.ledger
        self._limits = runtime.settings.limits
        self._held = held
        self._job = held.grant.job

    def run(self) -> Due | None:
        losses = self._held.grant.losses
        if self._job.cancel_requested:
            artifacts = self._runtime.spine.abandon(self._job, None)
            return self._move(JobState.CANCELLED, Change(summary="cancelled by request", artifacts=artifacts))
        if losses >= self._limits.lost_leases and JobState.FAILED in TRANSITIONS[self._job.state]:
            return self._poisonous(losses)
        outcome = self._step()
        if isinstance(outcome, Failed) and JobState.FAILED not in TRANSITIONS[self._job.state]:
            outcome = Advance(to=self._onward(), notes=outcome.notes)
        match outcome:
            case Advance():
                return self._move(outcome.to, _change(outcome.notes, waits=outcome.waits))
            case Wait():
                change = _change(outcome.notes, after_s=outcome.after_s, waits=outcome.waits)
                self._ledger.stay(self._job, change)
                return None if self._job.state in WAITING else Due(self._job, outcome.after_s, outcome.first)
            case Park():
                if self._job.state is JobState.PARKED:
                    self._ledger.stay(self._job, _change(outcome.notes, after_s=self._waiting_s))
                    return None
                return self._park(outcome)
            case Failed():
                return self._failed(outcome)
            case _:
                assert_never(outcome)

    def _step(self) -> StepOutcome:
        try:
            outcome = self._runtime.spine.step(self._job, self._held)
        except StaleFence:
            raise
        except EngineUnavailable as error:
            return Park(reason=ParkReason.ENGINE, summary=str(error))
        except NoSpace as error:
            return Park(reason=ParkReason.DISK, summary=str(error))
        except FarmError as error:
            _log.warning("%s", error, extra=context(Action.STEP_FAILED, self._job), exc_info=True)
            return Failed(fault=error.fault, summary=str(error), next_step=error.next_step)
        except Exception as error:
            # A defect of ours may not stop the other jobs: it is charged like a broken machine.
            _log.exception("%s", error, extra=context(Action.STEP_FAILED, self._job))
            return Failed(fault=Fault.INFRA, summary=f"{type(error).__name__}: {error}")
        if isinstance(outcome, Advance) and not _allowed(self._job, outcome.to):
            summary = f"the step of {self._job.state} asked for {outcome.to}, which the table does not have"
            _log.error("%s", summary, extra=context(Action.STEP_FAILED, self._job))
            return Failed(fault=Fault.INFRA, summary=summary)
        return outcome

    def _onward(self) -> JobState:
        match self._job.state:
            case JobState.PARKED:
                return self._job.parked_from or JobState.QUEUED
            case JobState.AWAITING_GPU:
                return JobState.VERIFYING
            case _:
                return JobState.PREPARING

    def _failed(self, failed: Failed) -> Due | None:
        decision = self._decide(failed)
        if decision.after is After.PARK:
            return self._park(Park(reason=ParkReason.BUDGET, summary=failed.summary, notes=failed.notes))
        artifacts = {**failed.notes.artifacts, **self._runtime.spine.abandon(self._job, failed)}
        _log.info("%s: %s", failed.summary, decision.reason, extra=context(Action.STEP_FAILED, self._job))

        def change(charge: Charge, after_s: float = 0.0) -> Change:
            return Change(
                summary=failed.summary,
                fault=failed.fault,
                charge=charge,
                after_s=after_s,
                artifacts=artifacts,
                gates=failed.notes.gates,
                events=failed.notes.events,
            )

        match decision.after:
            case After.ATTEMPT:
                return self._move(JobState.QUEUED, change(Charge.ATTEMPT))
            case After.TRANSIENT:
                backoff_s = self._limits.transient_backoff_s * 2**self._job.transients
                return self._move(JobState.QUEUED, change(Charge.TRANSIENT, backoff_s))
            case After.FAIL:
                return self._move(JobState.FAILED, change(Charge.ATTEMPT))
            case _:
                assert_never(decision.after)

    def _decide(self, failed: Failed) -> Decision:
        if failed.final:
            return Decision(after=After.FAIL, reason="repeating the attempt cannot help")
        run = self._ledger.run(self._job.run)
        spine, attempt = self._runtime.spine, self._job.attempt
        counts = Counts(
            attempt=attempt,
            attempts=run.attempts,
            transients=self._job.transients,
            transient_retries=self._limits.transient_retries,
        )
        try:
            last, following = spine.executors(self._job, attempt), spine.executors(self._job, attempt + 1)
        except FarmError as error:
            # What would decide on a further attempt cannot be read, e.g. a recipe that was broken meanwhile.
            return Decision(after=After.FAIL, reason=f"no further attempt can be planned: {error}")
        return decide(failed.fault, counts, repeats=same_inputs(last, following))

    def _poisonous(self, losses: int) -> Due | None:
        summary = f"its worker vanished {losses} times in a row while the job was {self._job.state}"
        failed = Failed(fault=Fault.INFRA, summary=summary)
        # If cleaning up kills the worker as well, it is not tried a second time.
        artifacts = self._runtime.spine.abandon(self._job, failed) if losses == self._limits.lost_leases else {}
        change = Change(summary=summary, fault=Fault.INFRA, charge=Charge.ATTEMPT, artifacts=artifacts)
        return self._move(JobState.FAILED, change)

    def _park(self, park: Park) -> Due | None:
        change = _change(park.notes, summary=park.summary, park_reason=park.reason, after_s=self._waiting_s)
        return self._move(JobState.PARKED, change)

    @property
    def _waiting_s(self) -> float:
        return self._runtime.settings.worker.waiting_poll_s

    def _move(self, to: JobState, change: Change) -> Due | None:
        _tell(self._runtime.listeners, "moving", self._job, to)
        moved = self._ledger.move(self._job, to, change)
        if to in FINAL:
            self._runtime.spine.forget(moved)
        _tell(self._runtime.listeners, "moved", moved, self._job.state)
        return None if to in FINAL | WAITING else Due(moved, change.after_s)


def _allowed(job: Job, to: JobState) -> bool:
    if to in (JobState.CANCELLED, JobState.FAILED, JobState.PARKED):
        return False
    return to is job.parked_from if job.state is JobState.PARKED else to in TRANSITIONS[job.state]


def _change(notes: Notes, **more: Any) -> Change:
    facts: dict[str, Any] = {
        "summary": notes.summary,
        "artifacts": notes.artifacts,
        "gates": notes.gates,
        "events": notes.events,
        "commit": notes.commit,
        "branch": notes.branch,
    }
    return Change(**{**facts, **more})


def _tell(listeners: tuple[Listener, ...], name: str, job: Job, state: JobState) -> None:
    for listener in listeners:
        try:
            getattr(listener, name)(job, state)
        except Exception as error:
            _log.exception("%s", error, extra=context(Action.LISTENER_FAILED, job))


def _lookup(ledger: Ledger) -> Callable[[str], Job | None]:
    def lookup(job_id: str) -> Job | None:
        found = ledger.jobs(ids=[job_id])
        return found[0] if found else None

    return lookup

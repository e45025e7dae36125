"""A spine that does what a script says, for tests of everything around it; with a listener that blocks.

`STATE/scripted/<op>.json` is a `Script`. A job's place in its script is the number of transitions that
the ledger holds, so that a step that is repeated after a crash does the same again.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.codec import decode
from farm.events import Moved
from farm.fault import Fault
from farm.job import FINAL, TRANSITIONS, Job, JobState, ParkReason
from farm.ledger import TRACE, Ledger
from farm.pipeline.stage import ExecutorKind, Stage
from farm.settings import Settings
from workers.spine import Advance, Failed, Hold, Notes, Park, StepOutcome, Wait

_ASIDE = frozenset({JobState.QUEUED, JobState.PARKED, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, kw_only=True)
class Act:
    """What one step answers."""

    to: JobState  #: CANCELLED asks for it, QUEUED and FAILED fail, PARKED parks, others advance
    wait_s: float = 0.0  #: polls until this long after its first call, seconds
    fault: Fault | None = None  #: for QUEUED and FAILED
    check: bool = False  #: whether it checks its lease at the end, as before a push


@dataclass(frozen=True, kw_only=True)
class Block:
    """Where a worker stops and waits to be killed, the first time it comes there."""

    move: int  #: number of the transition, from 0
    written: bool  #: after its write, else before


@dataclass(frozen=True, kw_only=True)
class Script:
    """A job's life."""

    acts: tuple[Act, ...]
    block: Block | None = None
    executor: ExecutorKind = ExecutorKind.SCRIPTED  #: who performs all stages


def way(start: JobState, goal: JobState) -> tuple[JobState, ...]:
    """The shortest way by the table, `start` left out, without failing, parking or going back."""
    ways: dict[JobState, tuple[JobState, ...]] = {start: ()}
    pending = [start]
    while pending:
        here = pending.pop(0)
        if here is goal:
            return ways[here]
        for there in sorted(TRANSITIONS[here] - _ASIDE):
            if there not in ways:
                ways[there] = (*ways[here], there)
                pending.append(there)
    raise ValueError(f"no way leads from {start} to {goal}")


class ScriptedSpine:
    """See `workers.spine.Spine`. Side effects are files under `STATE/scripted/done/<job>/`."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self._root = settings.state / "scripted"
        self._ledger = ledger

    def step(self, job: Job, hold: Hold) -> StepOutcome:
        """The answer of the act whose turn it is; jobs without a script go the shortest way."""
        number = moves(self._ledger, job)
        act = self._act(job, number)
        effect = self._root / "done" / job.id / str(number)
        _touch(effect, f"{job.state}\n")
        self._count(job, number)
        remaining_s = act.wait_s - (time.time() - effect.stat().st_mtime)
        if remaining_s > 0:
            return Wait(after_s=min(remaining_s, 0.2))
        if act.check:
            hold.check()
        match act.to:
            case JobState.CANCELLED:
                # With a fresh lease the wish is left to the worker, whatever the state.
                hold.check()
                self._ledger.request_cancel(job.id)
                return Wait(after_s=0.0)
            case JobState.PARKED:
                return Park(reason=ParkReason.MODEL, summary="the script parks here")
            case JobState.FAILED:
                return Failed(fault=act.fault or Fault.UNSUPPORTED, summary="the script fails here")
            case JobState.QUEUED if job.state is not JobState.PARKED:
                return Failed(fault=act.fault or Fault.AGENT, summary="the script fails this attempt")
            case JobState.ACCEPTED:
                return Advance(to=act.to, notes=Notes(commit="0" * 40, branch=f"farm/scripted/{job.op}"))
            case _:
                return Advance(to=act.to)

    def abandon(self, job: Job, failure: Failed | None) -> Mapping[str, str]:
        """A file, and for a failure the digest of a trace."""
        _touch(self._root / "done" / job.id / f"abandoned-{moves(self._ledger, job)}", "")
        return {} if failure is None else {TRACE: "f" * 64}

    def forget(self, job: Job) -> None:
        """Nothing: effects are what tests look at."""

    def executors(self, job: Job, attempt: int) -> Mapping[Stage, ExecutorKind]:
        """The script's executor for every stage."""
        return dict.fromkeys(Stage, self._script(job).executor)

    def reap(self, lookup: Callable[[str], Job | None]) -> int:
        """Mark the effects of final jobs as reaped; how many were new."""
        reaped = 0
        for folder in sorted((self._root / "done").glob("*")):
            job = lookup(folder.name)
            if (job is None or job.state in FINAL) and not (folder / "reaped").exists():
                _touch(folder / "reaped", "")
                reaped += 1
        return reaped

    def _script(self, job: Job) -> Script:
        try:
            text = (self._root / f"{job.op}.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return Script(acts=())
        return decode(Script, json.loads(text))

    def _act(self, job: Job, number: int) -> Act:
        acts = self._script(job).acts
        if number < len(acts):
            return acts[number]
        if job.state is JobState.PARKED:
            return Act(to=job.parked_from or JobState.QUEUED)
        return Act(to=way(job.state, JobState.ACCEPTED)[0])

    def _count(self, job: Job, number: int) -> None:
        with (self._root / "calls").open("a", encoding="utf-8") as calls:
            calls.write(f"{job.id} {number} {job.fence}\n")


class Blocker:
    """See `workers.spine.Listener`: waits before or after the write that a script names, once."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self._spine = ScriptedSpine(settings, ledger)
        self._ledger = ledger
        self._folder = settings.state / "scripted" / "blocked"

    def moving(self, job: Job, to: JobState) -> None:
        """Wait when the script blocks before this write."""
        self._maybe(job, Block(move=moves(self._ledger, job), written=False))

    def moved(self, job: Job, source: JobState) -> None:
        """Wait when the script blocks after this write."""
        self._maybe(job, Block(move=moves(self._ledger, job) - 1, written=True))

    def _maybe(self, job: Job, place: Block) -> None:
        if self._spine._script(job).block != place or not _touch(self._folder / job.id, ""):
            return
        while not (self._folder / f"{job.id}.go").exists():
            time.sleep(0.02)


def moves(ledger: Ledger, job: Job) -> int:
    """How many transitions the ledger holds for the job."""
    return sum(isinstance(logged.event, Moved) for logged in ledger.events(job=job.id))


def build_spine(settings: Settings, ledger: Ledger) -> ScriptedSpine:
    """The factory that `worker.spine` names."""
    return ScriptedSpine(settings, ledger)


def build_blocker(settings: Settings, ledger: Ledger) -> Blocker:
    """The factory that `worker.listeners` names."""
    return Blocker(settings, ledger)


def _touch(path: Path, text: str) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return True

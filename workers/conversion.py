"""What each step of a job does: the spine that tasks and the one-shot driver both follow.

PREPARING makes the workspace, RUNNING watches the pipeline's box and captures the patch, CAPTURED sets up
the judging, VERIFYING watches the gate box and decides, LANDING commits. Each step may be repeated after
a crash: it gets or creates, and what it found is kept by the transition that follows.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from containers.box.files import parse_json
from containers.engine import Engine
from containers.spec import BoxFolders
from farm.acceptance import Judgement, decide
from farm.capture import read_tree
from farm.codec import encode
from farm.errors import PatchConflict, PatchRefused, RemoteRefused, RemoteSilent, RepositoryError
from farm.events import GateRuled
from farm.fault import Fault
from farm.gates import GateReport
from farm.job import FINAL, Job, JobState, ParkReason, WaitsFor
from farm.ledger import TRACE, Ledger
from farm.orders import BoxOrder, BoxResult, Purpose
from farm.patch import Patch, apply_patch, make_patch, render
from farm.pipeline.stage import ExecutorKind, Stage
from farm.recipe import load_recipe
from farm.report.evidence import GATES, RESULT
from farm.store import ArtifactStore
from workers.agents import Agents
from workers.boxes import Boxes, Look, Sight
from workers.evidence import EVIDENCE, keep_evidence
from workers.frozen import FrozenRecipes
from workers.gpu import GpuGates
from workers.landing import Landing, land
from workers.leavings import broken, ended, keep, read_record, stages
from workers.measuring import case, conclude, unruled
from workers.places import Places, jobs_folder, places
from workers.preparation import Preparer, make_out
from workers.repositories import Repositories
from workers.spine import Advance, Failed, Hold, Notes, Park, StepOutcome, Wait
from workers.traces import write_trace
from workers.workspace import visible, write_box_tree

PATCH = "patch"
#: A job that waits for its turn is asked again after a base time and so much more for each job that waits as well:
#: a free place is found at once by somebody, and many waiting jobs cost no more than a few.
TURN_S, TURN_EACH_S = 1.0, 0.2
#: States in which a job has a box or is about to have one.
AT_WORK = (JobState.PREPARING, JobState.RUNNING, JobState.CAPTURED, JobState.VERIFYING)
#: Jobs that are prepared while all boxes are taken, so that a free place is filled at once.
AHEAD = 2
#: A running box is looked at after this share of its age, and within these bounds, seconds.
POLL_SHARE, POLL_LEAST_S, POLL_MOST_S = 0.1, 0.2, 1.0
WAITING_S = 30.0
#: A job that waits for the model API or for money is looked at this often, seconds.
ASKING_S = 5.0
#: Waits before a push is tried again, after a remote that did not take it and after one that did not answer.
REFUSED_WAITS_S = (2.0,)
SILENT_WAITS_S = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)


class Conversion:
    """The spine of real jobs. `Spine` says what each method promises."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        store: ArtifactStore,
        engine: Engine,
        boxes: Boxes,
        preparer: Preparer,
        repositories: Repositories,
        recipes: FrozenRecipes,
        lib: Path,
        state: Path,
        farm: str,
        versions: Mapping[str, str],
        gpu: GpuGates,
        agents: Agents,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._engine = engine
        self._boxes = boxes
        self._preparer = preparer
        self._repositories = repositories
        self._recipes = recipes
        self._lib = lib
        self._state = state
        self._farm = farm
        self._versions = versions
        self._gpu = gpu
        self._agents = agents

    def step(self, job: Job, hold: Hold) -> StepOutcome:
        """See Spine."""
        match job.state:
            case JobState.QUEUED:
                return self._take_turn(job)
            case JobState.PREPARING:
                return self._prepare(job)
            case JobState.RUNNING:
                return self._run(job)
            case JobState.CAPTURED:
                return self._set_up_gate(job)
            case JobState.VERIFYING:
                return self._verify(job, hold)
            case JobState.LANDING:
                return self._land(job, hold)
            case JobState.AWAITING_GPU:
                known = self._ledger.artifacts(job.id, attempt=job.attempt)
                return Advance(to=JobState.VERIFYING) if unruled(known) else self._gpu.offer(job, known)
            case JobState.PARKED:
                return self._unpark(job)
            case JobState.ACCEPTED | JobState.FAILED | JobState.CANCELLED:
                return Wait(after_s=WAITING_S)

    def executors(self, job: Job, attempt: int) -> Mapping[Stage, ExecutorKind]:
        """See Spine."""
        run = self._ledger.run(job.run)
        recipe = load_recipe(self._recipes.folder(job.run, run.recipe))
        return dict.fromkeys(Stage, run.executors) if run.executors else dict(recipe.executors)

    def _take_turn(self, job: Job) -> StepOutcome:
        counts = self._ledger.counts((JobState.QUEUED, *AT_WORK))
        free = self._boxes.most + AHEAD - sum(counts[state] for state in AT_WORK)
        before = self._ledger.ahead(job.id, WaitsFor.TURN) if free > 0 else ()
        if len(before) < free:
            return Advance(to=JobState.PREPARING)
        after_s = TURN_S + TURN_EACH_S * counts[JobState.QUEUED]
        return Wait(after_s=after_s, waits=WaitsFor.TURN, first=before[0] if before else None)

    def _prepare(self, job: Job) -> StepOutcome:
        at = places(self._state, job)
        run = self._ledger.run(job.run)
        previous = self._previous_trace(job)
        executors = dict(self.executors(job, job.attempt))
        recipe = self._recipes.folder(run.id, run.recipe)
        missing = self._agents.missing(executors, recipe)
        if missing is not None:
            return Park(reason=ParkReason.MODEL, summary=missing)
        agents = self._agents.order(executors, recipe)
        kept = self._preparer.prepare(run, job, at, executors, previous, agents)
        if agents is not None:
            self._agents.give_token(job, at.token)
        artifacts = {name: self._store.put(data) for name, data in kept.items()}
        return Advance(to=JobState.RUNNING, notes=Notes(artifacts=artifacts))

    def _run(self, job: Job) -> StepOutcome:
        at = places(self._state, job)
        order = parse_json(at.order.read_bytes(), BoxOrder)
        recipe = load_recipe(self._recipes.folder(order.run, order.recipe))
        folders = self._folders(order, at.workspace, at.out, at.order)
        if order.agents is not None:
            folders = replace(folders, token=at.token, gateway=self._agents.gateway)
        look = self._look(job, order, folders, RESULT, recipe.limits.attempt_limit_s)
        if look.sight in (Sight.FULL, Sight.RUNNING):
            return _poll(look)
        artifacts = keep(self._store, at.out, look)
        if look.sight is not Sight.DONE:
            return broken(look, artifacts)
        result = read_record(self._store, artifacts, RESULT, BoxResult)
        events = (ended(look), *stages(look.name, result))
        if result.parked is not None:
            self._agents.park(result.parked, at.parked)
            notes = Notes(artifacts=artifacts, events=events)
            return Park(reason=result.parked.reason, summary=result.parked.summary, notes=notes)
        self._agents.take_token(job)
        if result.diagnosis is not None:
            diagnosis = result.diagnosis
            notes = Notes(artifacts=artifacts, events=events)
            return Failed(fault=diagnosis.fault, summary=diagnosis.summary, notes=notes)
        subject = self._preparer.subject(self._ledger.run(job.run), job)
        before = visible(subject.bare)
        patch = make_patch(before, read_tree(at.workspace, known=before))
        artifacts[PATCH] = self._store.put(patch.to_bytes())
        artifacts["patch.diff"] = self._store.put(render(patch, before).encode("utf-8", "replace"))
        return Advance(to=JobState.CAPTURED, notes=Notes(artifacts=artifacts, events=events))

    def _set_up_gate(self, job: Job) -> StepOutcome:
        at = places(self._state, job)
        run = self._ledger.run(job.run)
        subject = self._preparer.subject(run, job)
        patch = self._patch(job)
        if not patch.changes:
            return Failed(fault=Fault.AGENT, summary="the pipeline changed nothing")
        violations = subject.conversion.check(subject.bare, subject.op, patch)
        if violations:
            listed = "; ".join(f"{violation.path}: {violation.reason}" for violation in violations)
            return Failed(fault=Fault.INTEGRITY, summary=f"the patch leaves its change set: {listed}")
        try:
            tree = apply_patch(visible(subject.bare), patch)
        except (PatchConflict, PatchRefused) as error:
            return Failed(fault=error.fault, summary=str(error))
        write_box_tree(tree, at.gate_work)
        make_out(at.gate_out)
        executors = dict(self.executors(job, job.attempt))
        order = self._preparer.order(
            subject, run, job, executors, None, purpose=Purpose.GATE, patch_sha256=patch.digest
        )
        at.gate_order.write_text(json.dumps(encode(order), indent=1), encoding="utf-8")
        return Advance(to=JobState.VERIFYING)

    def _verify(self, job: Job, hold: Hold) -> StepOutcome:
        known = self._ledger.artifacts(job.id, attempt=job.attempt)
        if unruled(known):
            return self._conclude(job, known)
        if self._gpu.under_way(job, known):
            return self._gpu.watch(job, known, hold, lambda artifacts: self._conclude(job, artifacts))
        if self._gpu.over(job, known):
            return Advance(to=JobState.AWAITING_GPU, waits=self._gpu.waits())
        at = places(self._state, job)
        run = self._ledger.run(job.run)
        order = parse_json(at.gate_order.read_bytes(), BoxOrder)
        recipe = load_recipe(self._recipes.folder(order.run, order.recipe))
        folders = self._folders(order, at.gate_work, at.gate_out, at.gate_order)
        look = self._look(job, order, folders, GATES, recipe.limits.attempt_limit_s)
        if look.sight in (Sight.FULL, Sight.RUNNING):
            return _poll(look)
        artifacts = keep(self._store, at.gate_out, look, prefix="gate-")
        if look.sight is not Sight.DONE:
            return broken(look, artifacts)
        report = read_record(self._store, artifacts, GATES, GateReport)
        ruled = tuple(
            GateRuled(box=look.name, gate=r.gate, ruling=r.ruling, basis=r.basis, summary=r.summary)
            for r in report.gates
        )
        notes = Notes(artifacts=artifacts, gates=report.gates, events=(ended(look), *ruled))
        decision = decide(
            report,
            patch_sha256=self._patch(job).digest,
            accept=run.accept,
            certifiable=recipe.gates.certifiable,
        )
        match decision.judgement:
            case Judgement.LAND:
                return Advance(to=JobState.LANDING, notes=notes)
            case Judgement.AWAIT_GPU:
                said = _said(notes, decision.reason)
                return Advance(to=JobState.AWAITING_GPU, notes=said, waits=self._gpu.waits())
            case Judgement.REJECT | Judgement.REPEAT:
                return Failed(fault=decision.fault or Fault.KERNEL, summary=decision.reason, notes=notes)

    def _conclude(self, job: Job, artifacts: Mapping[str, str]) -> StepOutcome:
        run = self._ledger.run(job.run)
        return conclude(
            self._store,
            artifacts,
            job.id,
            patch_sha256=self._patch(job).digest,
            accept=run.accept,
            certifiable=load_recipe(self._recipes.folder(run.id, run.recipe)).gates.certifiable,
        )

    def _land(self, job: Job, hold: Hold) -> StepOutcome:
        run = self._ledger.run(job.run)
        subject = self._preparer.subject(run, job)
        artifacts = self._ledger.artifacts(job.id, attempt=job.attempt)
        report = parse_json(self._store.get(artifacts[GATES]), GateReport)
        patch = self._patch(job)
        evidence = keep_evidence(
            self._store,
            op=job.op,
            recipe=run.recipe,
            base=run.base,
            bare=subject.bare.tree,
            patch=patch,
            accept=run.accept,
            certifiable=subject.recipe.gates.certifiable,
            report=report,
            versions=self._versions,
            case=case(self._store, artifacts, job.id),
        )
        landing = Landing(
            run=run.id,
            job=job.id,
            op=job.op,
            recipe=run.recipe,
            source=subject.recipe.source,
            target=subject.recipe.target,
            repo=run.repo,
            push_to=run.push_to,
            base=run.base,
            accept=run.accept,
            gates=report.gates,
            evidence_sha256=evidence,
            versions=self._versions,
            when_s=int(run.created_at),
        )
        hold.check()
        try:
            landed = land(self._repositories, landing, subject.bare.tree, patch)
        except (RemoteRefused, RepositoryError) as error:
            return _not_taken(places(self._state, job), error)
        notes = Notes(
            artifacts={EVIDENCE: evidence},
            commit=landed.commit,
            branch=landed.branch,
            summary=f"landed on {landed.branch}",
        )
        return Advance(to=JobState.ACCEPTED, notes=notes)

    def _unpark(self, job: Job) -> StepOutcome:
        back = job.parked_from or JobState.QUEUED
        match job.park_reason:
            case ParkReason.ENGINE:
                self._engine.list({"farm": self._farm})  # raises EngineUnavailable while it does not answer
                return Advance(to=back)
            case ParkReason.DISK:
                self._preparer.check_space(places(self._state, job).root)  # raises NoSpace
                return Advance(to=back)
            case ParkReason.BROKER | None:
                return Advance(to=back)
            case ParkReason.GPU_LOST if self._gpu.back():
                return Advance(to=back)
            case ParkReason.GPU_LOST:
                return Wait(after_s=WAITING_S)
            case ParkReason.MODEL | ParkReason.BUDGET:
                return self._ask_again(job, back)

    def _ask_again(self, job: Job, back: JobState) -> StepOutcome:
        """Let a new box go on in the folders of the one that stopped, when agents can ask again."""
        at, run = places(self._state, job), self._ledger.run(job.run)
        if back is not JobState.RUNNING:
            recipe = self._recipes.folder(run.id, run.recipe)
            missing = self._agents.missing(self.executors(job, job.attempt), recipe)
            return Advance(to=back) if missing is None else Wait(after_s=ASKING_S)
        if not self._agents.may_go_on(job, at.parked):
            return Wait(after_s=ASKING_S)
        # In this order: what says why it stopped goes last, since a crash repeats the step.
        for file in (at.out / RESULT, at.order.with_suffix(".starts"), at.order.with_suffix(".end"), at.parked):
            file.unlink(missing_ok=True)
        return Advance(to=back)

    def abandon(self, job: Job, failure: Failed | None) -> Mapping[str, str]:
        """See Spine."""
        self._agents.take_token(job)
        logs = self._remove_boxes(places(self._state, job))
        logs["gpu-box.log"] = self._gpu.abandon(job, self._ledger.artifacts(job.id, attempt=job.attempt))
        kept = {name: self._store.put(log.encode()) for name, log in logs.items() if log}
        if failure is not None:
            kept[TRACE] = write_trace(self._ledger, self._store, job, failure, kept)
        return kept

    def forget(self, job: Job) -> None:
        """See Spine."""
        shutil.rmtree(places(self._state, job).root.parent, ignore_errors=True)
        if all(other.state in FINAL for other in self._ledger.jobs(run=job.run)):
            self._recipes.forget(job.run)

    def reap(self, lookup: Callable[[str], Job | None]) -> int:
        """See Spine."""
        removed = 0
        for box in self._engine.list({"farm": self._farm}):
            job = lookup(box.labels.get("job", ""))
            wanted = job is not None and job.state not in FINAL and str(job.attempt) == box.labels.get("attempt")
            if not wanted:
                self._engine.remove(box.name, grace_s=1.0)
                removed += 1
        for folder in sorted(jobs_folder(self._state).glob("*")):
            job = lookup(folder.name)
            if job is None or job.state in FINAL:
                shutil.rmtree(folder, ignore_errors=True)
        return removed

    def _remove_boxes(self, at: Places) -> dict[str, str]:
        """Remove an attempt's boxes, which are named after their orders; their logs."""
        logs = {}
        for order_file, name in ((at.order, "box.log"), (at.gate_order, "gate-box.log")):
            if order_file.exists():
                logs[name] = self._boxes.remove(parse_json(order_file.read_bytes(), BoxOrder))
        return logs

    def _look(self, job: Job, order: BoxOrder, folders: BoxFolders, result: str, limit_s: float) -> Look:
        def ahead() -> tuple[str, ...]:
            return self._ledger.ahead(job.id, WaitsFor.BOX)

        return self._boxes.look(order, folders, result=result, limit_s=limit_s, ahead=ahead)

    def _folders(self, order: BoxOrder, work: Path, out: Path, order_file: Path) -> BoxFolders:
        return BoxFolders(
            workspace=work,
            out=out,
            order=order_file,
            lib=self._lib,
            recipe=self._recipes.folder(order.run, order.recipe),
        )

    def _patch(self, job: Job) -> Patch:
        artifacts = self._ledger.artifacts(job.id, attempt=job.attempt)
        return Patch.from_bytes(self._store.get(artifacts[PATCH]))

    def _previous_trace(self, job: Job) -> bytes | None:
        traces = [a.trace for a in self._ledger.attempts(job.id) if a.number < job.attempt and a.trace]
        return self._store.get(traces[-1]) if traces else None


def _poll(look: Look) -> Wait:
    if look.sight is Sight.FULL:
        return Wait(after_s=TURN_S, waits=WaitsFor.BOX, first=look.first)
    return Wait(after_s=min(POLL_MOST_S, max(POLL_LEAST_S, POLL_SHARE * look.age_s)))


def _said(notes: Notes, summary: str) -> Notes:
    return Notes(artifacts=notes.artifacts, gates=notes.gates, events=notes.events, summary=summary)


def _not_taken(at: Places, error: RemoteRefused | RepositoryError) -> StepOutcome:
    """Ask again, the patch being proven and kept, or give up; nothing of the conversion is repeated."""
    waits = SILENT_WAITS_S if isinstance(error, RemoteSilent) else REFUSED_WAITS_S
    tried = at.pushes.stat().st_size if at.pushes.exists() else 0
    if tried >= len(waits):
        return Failed(fault=error.fault, summary=str(error), final=True)
    at.root.mkdir(parents=True, exist_ok=True)
    with at.pushes.open("ab") as pushes:
        pushes.write(b".")
    return Wait(after_s=waits[tried], notes=Notes(summary=str(error)))

"""A spine for worker processes: jobs of cpugym that wait for a GPU at once, then the real spine and real boxes.

Nothing is converted: a job is given the landed implementation as its patch. What it waits for, and what follows
from the results, is the real `Conversion`.
"""

import json
import os
import shutil
from pathlib import Path
from typing import cast

from containers import toolchain
from containers.access import box_user
from containers.engine.docker_engine import DockerEngine
from containers.spec import BoxSettings
from farm.bundle import Bundle
from farm.codec import encode
from farm.data import config_folder
from farm.job import Job, JobState, Run
from farm.ledger import Ledger
from farm.report.evidence import GATES
from farm.settings import Settings
from farm.store import FolderStore
from tests import gate_bundle
from tests.integration.workers.conversion_bench import certified
from workers.agents import Agents
from workers.assembly import farm_id
from workers.benches import Benches
from workers.boxes import Boxes
from workers.conversion import PATCH, Conversion
from workers.devices import HostDevices
from workers.frozen import FrozenRecipes
from workers.gpu import GpuGates
from workers.preparation import Preparer
from workers.repositories import Repositories
from workers.spine import Advance, Hold, Notes, StepOutcome

_SHORT = {
    JobState.QUEUED: JobState.PREPARING,
    JobState.PREPARING: JobState.RUNNING,
    JobState.RUNNING: JobState.CAPTURED,
}


class CpugymConversion(Conversion):
    """The real spine from AWAITING_GPU on; what comes before is skipped, and nothing lands."""

    def step(self, job: Job, hold: Hold) -> StepOutcome:
        """See Spine."""
        if job.state in _SHORT:
            return Advance(to=_SHORT[job.state])
        if job.state is JobState.CAPTURED:
            at = self._state / "made" / job.id
            shutil.rmtree(at, ignore_errors=True)
            patch = gate_bundle.exhibit(at, job.op).patch
            report = json.dumps(encode(certified(patch.digest))).encode()
            kept = {PATCH: self._store.put(patch.to_bytes()), GATES: self._store.put(report)}
            return Advance(to=JobState.VERIFYING, notes=Notes(artifacts=kept))
        known = self._ledger.artifacts(job.id, attempt=job.attempt)
        if job.state is JobState.VERIFYING and "gpu-run.json" not in known:
            return Advance(to=JobState.AWAITING_GPU)
        return super().step(job, hold)


def build_spine(settings: Settings, ledger: Ledger) -> CpugymConversion:
    """The factory that `worker.spine` names."""
    state = settings.state
    user = box_user(os.geteuid(), os.getegid())
    engine = DockerEngine(environment=os.environ, user=f"{user.uid}:{user.gid}")
    boxes = BoxSettings(farm=farm_id(state), toolchain=toolchain.load(settings.toolchain))
    store = FolderStore(settings.artifacts)
    devices = HostDevices(settings.gpu)

    def bundle(run: Run, job: Job, folder: Path) -> Bundle:
        at = state / "bundled" / job.id
        shutil.rmtree(at, ignore_errors=True)
        return gate_bundle.write(folder, job.op, at=at, job=job.id)

    gpu = GpuGates(
        ledger=ledger,
        store=store,
        benches=Benches(
            engine=engine,
            settings=boxes,
            gpu=settings.gpu,
            devices=devices,
            lock=state / "gpu.lock",
            apart=os.geteuid() == 0,
        ),
        devices=devices,
        settings=settings.gpu,
        state=state,
        bundles=bundle,
    )
    return CpugymConversion(
        ledger=ledger,
        store=store,
        engine=engine,
        boxes=Boxes(engine=engine, settings=boxes, lock=state / "boxes.lock", most=2),
        preparer=cast(Preparer, None),
        repositories=cast(Repositories, None),
        recipes=FrozenRecipes(config_folder() / "recipes", state),
        lib=state,
        state=state,
        farm=boxes.farm,
        versions={},
        gpu=gpu,
        agents=Agents(settings, ledger),
    )

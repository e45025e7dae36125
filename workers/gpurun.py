"""One run of a job's gates on a GPU: what is known of it, and what came of those before."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from containers.box.files import parse_json
from farm.job import Job, Run
from farm.orders import BoxOrder, Purpose
from farm.store import ArtifactStore

#: Artifact of an attempt: `GpuRun`, its last run on a GPU.
GPU_RUN = "gpu-run.json"


class RunEnd(StrEnum):
    """How a run on a GPU ended."""

    MEASURED = "measured"  #: its results are kept
    NOT_STARTED = "not_started"  #: the device went to another job before its box began
    BROKEN = "broken"  #: its box ended without results
    HUNG = "hung"  #: its box was stopped: too long, or no sign of life
    LOST = "lost"  #: the device was gone after it; nothing of it is used


@dataclass(frozen=True, kw_only=True)
class GpuRun:
    """gpu-run.json: an attempt's last run on a GPU, and how those before it ended."""

    number: int  #: from 1
    host: str
    device: str  #: its index there
    transients: int  #: of the job; the run belongs to this retry
    ended: RunEnd | None = None  #: None: it is under way
    ended_at: float = 0.0  #: seconds since the epoch, UTC
    measured: int = 0  #: runs that gave results
    wasted: int = 0  #: runs that came to nothing since the last that gave some
    harmful: int = 0  #: runs that hung or lost their device
    schema: int = 1

    def over(self, how: RunEnd, now: float) -> "GpuRun":
        """The run as it ended."""
        over = replace(self, ended=how, ended_at=now)
        match how:
            case RunEnd.MEASURED:
                return replace(over, measured=self.measured + 1, wasted=0)
            case RunEnd.NOT_STARTED:
                return over
            case RunEnd.BROKEN:
                return replace(over, wasted=self.wasted + 1)
            case RunEnd.HUNG | RunEnd.LOST:
                return replace(over, wasted=self.wasted + 1, harmful=self.harmful + 1)


def last_run(store: ArtifactStore, job: Job, known: Mapping[str, str]) -> GpuRun | None:
    """The last run of this retry of the attempt, from the attempt's artifacts; None before the first."""
    if GPU_RUN not in known:
        return None
    run = parse_json(store.get(known[GPU_RUN]), GpuRun)
    return run if run.transients == job.transients else None


def measure_order(run: Run, job: Job, gpu: str) -> BoxOrder:
    """What names and labels the box; its program is told nothing but the bundle."""
    return BoxOrder(
        purpose=Purpose.MEASURE,
        run=run.id,
        job=job.id,
        attempt=job.attempt,
        op=job.op,
        recipe=run.recipe,
        conversion="",
        source="",
        target="",
        gpu=gpu,
        executors={},
        caps={},
        stage_limit_s=0.0,
        previous_trace=None,
    )

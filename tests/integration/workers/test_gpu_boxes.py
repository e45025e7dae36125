"""GPU gates with real boxes, worker processes and Redis; there is no device, and everything says so."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from containers.engine.docker_engine import DockerEngine
from containers.spec import DEVICE
from containers.toolchain import Toolchain
from farm.codec import decode
from farm.gates import GateName, GateReport, Ruling
from farm.job import JobState, ParkReason
from farm.report.evidence import GATES
from farm.results import RESULTS, Results
from farm.settings import Gpu, GpuAccess
from farm.store import FolderStore
from tests.integration.workers.farm_under_test import Farm, wait_until
from workers.assembly import farm_id
from workers.devices import Device, claim_name, label
from workers.gpurun import GPU_RUN

pytestmark = [pytest.mark.docker, pytest.mark.toolchain, pytest.mark.long]
ROOT = Path(__file__).parents[3]
HERE = Device("0")


class GpuFarm:
    """A farm whose workers have one pretended device; it is there while the file `there` is."""

    def __init__(self, farm: Farm, engine: DockerEngine, toolchain: Toolchain, at: Path) -> None:
        self.farm = farm
        self.engine = engine
        self.there = at / "there"
        self.there.touch()
        probe = at / "probe"
        probe.write_text(f"#!/bin/sh\ntest -e {self.there}\n")
        probe.chmod(0o755)
        gpu = Gpu(
            devices=(HERE.index,),
            access=GpuAccess.NONE,
            probe=(str(probe),),
            lease_s=5.0,
            runs=1,
            memory_bytes=4 << 30,
            options=("--only", "rows", "--part-limit-s", "300"),
        )
        farm.settings = farm.settings.model_copy(update={"gpu": gpu, "toolchain": toolchain.root})
        self.name = farm_id(farm.settings.state)
        self.store = FolderStore(farm.settings.artifacts)

    def boxes(self) -> dict[str, float | None]:
        """The boxes with the device that run now, and since when."""
        found = self.engine.list({"farm": self.name, DEVICE: label(HERE)})
        return {box.name: box.started_at for box in found if box.running}

    def artifacts(self, job: str) -> dict[str, str]:
        return dict(self.farm.ledger.artifacts(job, attempt=1))

    def ended(self, job: str) -> str | None:
        """How the job's last run on the device ended."""
        known = self.artifacts(job)
        if GPU_RUN not in known:
            return None
        how: str | None = json.loads(self.store.get(known[GPU_RUN]))["ended"]
        return how

    def close(self) -> None:
        for box in self.engine.list({"farm": self.name}):
            self.engine.remove(box.name, grace_s=0)


@pytest.fixture
def gpu_farm(
    make_farm: Callable[..., Farm],
    engine: DockerEngine,
    toolchain: Toolchain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[GpuFarm]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    spine = "tests.integration.workers.gpu_farm:build_spine"
    made = GpuFarm(make_farm(spine=spine, listeners=(), lease_s=4.0), engine, toolchain, tmp_path)
    yield made
    made.farm.close()
    made.close()


def test_two_jobs_share_a_device_one_after_the_other_though_their_worker_is_killed(gpu_farm: GpuFarm) -> None:
    farm = gpu_farm.farm
    jobs = [job.id for job in farm.submit(["relu", "scale"], recipe="cutile-rs")]
    farm.start_worker()
    farm.start_worker()
    wait_until(lambda: len(gpu_farm.boxes()) == 1, limit_s=120)
    (first,) = gpu_farm.boxes().items()
    for group in list(farm.groups):
        farm.groups.remove(group)
        farm.groups.append(group)
        farm.kill_worker()
    time.sleep(6.0)  # the claim's time and the lease's run out
    assert gpu_farm.boxes() == dict([first])
    assert farm.ledger.claimants([claim_name(HERE)]) == {}
    farm.start_worker()
    farm.start_worker()
    seen: dict[str, float | None] = {}
    most = 0
    deadline = time.monotonic() + 300
    while not all(gpu_farm.ended(job) == "measured" for job in jobs):
        states = [farm.ledger.job(job) for job in jobs]
        assert not any(job.state is JobState.FAILED for job in states), states
        assert time.monotonic() < deadline, states
        now = gpu_farm.boxes()
        most = max(most, len(now))
        seen |= now
        time.sleep(0.2)
    assert most == 1
    assert len(seen) == 2
    assert seen[first[0]] == first[1]  # adopted: the box of the killed worker, started once
    for job in jobs:
        wait_until(lambda job=job: farm.ledger.job(job).state is JobState.AWAITING_GPU)  # type: ignore[misc]
        _is_ruled_on(gpu_farm, job)
    assert farm.ledger.claimants([claim_name(HERE)]) == {}


def _is_ruled_on(gpu_farm: GpuFarm, job: str) -> None:
    """Rows were measured in a box without a device, and the evidence says so; nothing was timed."""
    known = gpu_farm.artifacts(job)
    report = decode(GateReport, json.loads(gpu_farm.store.get(known[GATES])))
    gates = {result.gate: result for result in report.gates}
    assert gates[GateName.EXECUTED].ruling is Ruling.PASS
    measurements = json.loads(gpu_farm.store.get(known["measurements.json"]))
    (run,) = measurements["runs"]
    results = decode(Results, json.loads(gpu_farm.store.get(run["files"][RESULTS])))
    assert (results.machine.gpu, results.gpu_uuid) == (None, None)
    assert results.isolation["device"] == "none: device 0 is pretended, the box was given none"
    assert results.isolation["network"].startswith("none")
    assert json.loads(gpu_farm.store.get(known["measured.json"]))["gpu"] == "no GPU"
    assert gpu_farm.farm.ledger.job(job).commit is None


def test_a_device_that_is_lost_during_a_run_parks_the_job_and_it_goes_on_when_it_is_back(
    gpu_farm: GpuFarm,
) -> None:
    farm = gpu_farm.farm
    (job,) = (job.id for job in farm.submit(["relu"], recipe="cutile-rs"))
    farm.start_worker()
    wait_until(lambda: len(gpu_farm.boxes()) == 1, limit_s=120)
    gpu_farm.there.unlink()
    for name in gpu_farm.boxes():
        gpu_farm.engine.remove(name, grace_s=0)
    wait_until(lambda: farm.ledger.job(job).state is JobState.PARKED, limit_s=120)
    parked = farm.ledger.job(job)
    assert (parked.park_reason, parked.attempt, parked.transients) == (ParkReason.GPU_LOST, 1, 0)
    gpu_farm.there.touch()
    wait_until(lambda: gpu_farm.ended(job) == "measured", limit_s=240)
    assert farm.ledger.job(job).attempt == 1

"""A waiting job gets a GPU, one at a time, through a box; the engine is in memory, the probe a real program."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box.files import write_json
from containers.box.gate.boxed import ENDED, RunEnded
from containers.engine import BoxSpec
from containers.engine.fake_engine import FakeExit
from containers.spec import DEVICE
from farm.bundle import MANIFEST, Bundle, parse_bundle
from farm.fault import Fault
from farm.job import Accept, Job, JobState, ParkReason, WaitsFor
from farm.measured.records import Outcome, Phase, RowRun
from farm.measured.ruling import Record
from farm.orders import Purpose
from farm.outcome import settled
from farm.settings import Gpu, GpuAccess
from tests.integration.workers.conversion_bench import Bench, folder, no_bundle
from tests.integration.workers.measurements import bundle_of, certifies_and_builds, write_results
from tests.unit.farm.measured import builders
from workers import conversion, gpu
from workers.devices import Device, claim_name
from workers.gpurun import GPU_RUN

NAME = claim_name(Device("0"))
Program = Callable[[BoxSpec], FakeExit | None]


def measures(records: list[Record]) -> Program:
    """A box whose runner records these."""

    def program(spec: BoxSpec) -> FakeExit:
        bundle = parse_bundle((folder(spec, "/farm/bundle") / MANIFEST).read_bytes())
        write_results(folder(spec, "/out"), bundle, records)
        write_json(folder(spec, "/out") / ENDED, RunEnded(exit_code=0))
        return FakeExit(log="the results are whole\n")

    return program


def says(text: str, code: int = 1) -> Program:
    """A box whose runner ends without results."""

    def program(spec: BoxSpec) -> FakeExit:
        write_json(folder(spec, "/out") / ENDED, RunEnded(exit_code=code))
        return FakeExit(exit_code=code, log=text)

    return program


class GpuBench(Bench):
    """Jobs that are about to wait for a GPU, on a host with one pretended device.

    The device is there while the file `there` is.
    """

    def __init__(self, tmp_path: Path, *, program: Program, **changes: object) -> None:
        tmp_path.mkdir(exist_ok=True)
        self.there = tmp_path / "there"
        self.there.touch()
        probe = tmp_path / "probe"
        probe.write_text(f'#!/bin/sh\ntest "$1" = 0 && test -e {self.there}\n')
        probe.chmod(0o755)
        ops = changes.pop("ops", ("relu",))
        settings = Gpu(
            **{"devices": ("0",), "access": GpuAccess.NONE, "probe": (str(probe),), "lease_s": 30.0, **changes}
        )
        super().__init__(tmp_path, accept=Accept.MEASURED, gate=certifies_and_builds, gpu=settings, ops=ops)
        self.programs[Purpose.MEASURE] = program
        self.bundles = self._bundle

    def _bundle(self, job: Job, at: Path) -> Bundle:
        at.mkdir()
        made = bundle_of(self, job.id)
        (at / MANIFEST).write_bytes(made.to_bytes())
        return made

    @property
    def device_boxes(self) -> list[str]:
        """Names of the boxes with a device, ever started."""
        return [name for name in self.engine.started if "-measure-" in name]

    def sooner(self) -> None:
        """Let the job's next step be due now."""
        self.ledger.supply(self.job, {})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WAITING_S", "BUSY_S", "POLL_S", "AGAIN_S"):
        monkeypatch.setattr(gpu, name, 0.01)
    monkeypatch.setattr(conversion, "WAITING_S", 0.01)


def run_of(bench: Bench) -> dict[str, object]:
    kept = bench.ledger.artifacts(bench.id, attempt=bench.job.attempt)
    document: dict[str, object] = json.loads(bench.store.get(kept[GPU_RUN]))
    return document


def test_a_waiting_job_is_measured_in_a_box_and_lands(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=measures(builders.honest()))
    assert bench.go(JobState.ACCEPTED).commit
    assert len(bench.device_boxes) == 1
    assert run_of(bench)["ended"] == "measured"
    assert bench.ledger.claimants([NAME]) == {}
    kept = bench.ledger.artifacts(bench.id, attempt=1)
    assert {"measurements.json", "measured.json", "gpu-box.log"} <= kept.keys()


def test_the_box_has_bundle_and_results_and_nothing_else_of_the_farm(tmp_path: Path) -> None:
    seen: list[BoxSpec] = []

    def program(spec: BoxSpec) -> None:
        seen.append(spec)

    bench = GpuBench(tmp_path, program=program)
    for _ in range(12):
        bench.step()
    spec = seen[0]
    own = [(mount.target, mount.writable) for mount in spec.mounts if str(mount.source) != mount.target]
    assert own == [("/farm/bundle", False), ("/out", True)]
    assert not any(name.startswith("TILEFARM") or name == "PYTHONPATH" for name in spec.env)
    assert "device=none: device 0 is pretended, the box was given none" in spec.argv
    assert spec.devices.nodes == spec.devices.request == ()
    assert spec.labels[DEVICE].endswith("/0")


def test_without_a_gpu_nothing_changes(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=measures(builders.honest()), devices=())
    bench.go(JobState.AWAITING_GPU)
    for _ in range(5):
        bench.step()
    assert (bench.job.state, bench.device_boxes) == (JobState.AWAITING_GPU, [])
    assert not bench.engine.list({DEVICE: "x"})


def test_a_failed_row_on_the_gpu_ends_the_job_with_a_trace(tmp_path: Path) -> None:
    bad = [
        replace(record, outcome=Outcome.FAILED, reason="AssertionError")
        if isinstance(record, RowRun) and record.phase is Phase.TARGET
        else record
        for record in builders.honest()
    ]
    bench = GpuBench(tmp_path, program=measures(bad))
    bench.go(JobState.FAILED)
    assert "correctness" in (bench.job.summary or "")
    assert bench.trace()


def test_what_stays_open_is_run_again_so_often_and_then_stays_with_its_reason(tmp_path: Path) -> None:
    rows = [r for r in builders.honest() if type(r).__name__ not in ("TimedCall", "ConfigFact")]
    bench = GpuBench(tmp_path, program=measures(rows), runs=2)
    for _ in range(40):
        bench.step()
    assert bench.job.state is JobState.AWAITING_GPU
    assert "geomean" in (bench.job.summary or "")
    assert len(bench.device_boxes) == 2
    assert run_of(bench)["measured"] == 2


def test_one_device_serves_one_job_at_a_time_in_the_order_of_the_run(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=lambda _: None, ops=("relu", "scale"))
    first, second = bench.ids

    def turn(*jobs: str) -> None:
        for job in jobs:
            bench.step(job)

    for _ in range(20):
        turn(first, second)
    assert [bench.ledger.job(job).state for job in bench.ids] == [JobState.VERIFYING, JobState.AWAITING_GPU]
    assert len(bench.device_boxes) == 1
    assert bench.ledger.waits([second]) == {second: WaitsFor.GPU}
    assert bench.ledger.claimants([NAME]) == {NAME: bench.device_boxes[0]}
    box = bench.engine.spec(bench.device_boxes[0])
    bench.engine.finish(box.name, measures(builders.honest())(box) or FakeExit())
    for _ in range(20):
        turn(first, second)
    assert bench.ledger.job(first).state is JobState.ACCEPTED
    assert len(bench.device_boxes) == 2
    assert bench.ledger.claimants([NAME]) == {NAME: bench.device_boxes[1]}


def test_a_lease_that_ran_out_while_its_box_works_lets_nobody_in(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=lambda _: None, ops=("relu", "scale"), lease_s=0.05)
    first, second = bench.ids
    for _ in range(12):
        bench.step(first)
    assert len(bench.device_boxes) == 1
    time.sleep(0.1)  # its worker is gone, and its claim with it
    assert bench.ledger.claimants([NAME]) == {}
    for _ in range(12):
        bench.step(second)
    assert bench.ledger.job(second).state is JobState.AWAITING_GPU
    assert len(bench.device_boxes) == 1


def test_a_device_that_went_to_another_job_before_the_box_began_is_not_used(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=measures(builders.honest()), lease_s=0.05)
    bench.go(JobState.AWAITING_GPU)
    while bench.job.state is JobState.AWAITING_GPU:
        bench.step()
    time.sleep(0.1)
    other = bench.ledger.claim(NAME, "another box", ttl_s=30.0)
    assert other is not None
    bench.step()
    assert (bench.job.state, bench.device_boxes) == (JobState.AWAITING_GPU, [])
    bench.ledger.release_claim(NAME, other)
    bench.go(JobState.ACCEPTED)


def test_a_gpu_that_is_lost_before_parks_the_job_until_it_is_back(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=measures(builders.honest()))
    bench.there.unlink()
    bench.go(JobState.PARKED)
    assert (bench.job.park_reason, bench.job.attempt) == (ParkReason.GPU_LOST, 1)
    assert "nvidia-smi" in (bench.job.summary or "")
    assert bench.device_boxes == []
    bench.step()
    assert bench.job.state is JobState.PARKED
    bench.there.touch()
    bench.go(JobState.ACCEPTED)
    assert (bench.job.attempt, bench.job.transients) == (1, 0)


def test_results_of_a_run_that_lost_its_gpu_are_not_used(tmp_path: Path) -> None:
    honest = measures(builders.honest())

    def loses(spec: BoxSpec) -> FakeExit | None:
        bench.there.unlink()
        return honest(spec)

    bench = GpuBench(tmp_path, program=loses)
    bench.go(JobState.PARKED)
    assert (bench.job.park_reason, bench.job.attempt) == (ParkReason.GPU_LOST, 1)
    assert "measurements.json" not in bench.ledger.artifacts(bench.id, attempt=1)
    assert bench.ledger.claimants([NAME]) == {}
    bench.there.touch()
    bench.programs[Purpose.MEASURE] = honest
    bench.go(JobState.ACCEPTED)
    assert (len(bench.device_boxes), bench.job.attempt, bench.job.transients) == (2, 1, 0)


def test_a_job_that_loses_its_gpu_every_time_is_failed(tmp_path: Path) -> None:
    def loses(spec: BoxSpec) -> FakeExit | None:
        bench.there.unlink()
        return measures(builders.honest())(spec)

    bench = GpuBench(tmp_path, program=loses)
    for _ in range(60):
        bench.step()
        if bench.job.state is JobState.PARKED:
            bench.there.touch()
    assert (bench.job.state, bench.job.fault) == (JobState.FAILED, Fault.ENV)
    assert len(bench.device_boxes) == gpu.MOST_HARM


def test_a_box_that_hangs_is_stopped_and_after_some_runs_the_job_is_failed(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=lambda _: None, limit_s=30.0)  # boxes are a minute old when they start
    bench.go(JobState.FAILED, most=80)
    assert bench.job.fault is Fault.HANG
    assert "was stopped" in (bench.job.summary or "")
    assert len(bench.device_boxes) == gpu.MOST_HARM
    assert bench.engine.list({}) == ()
    assert bench.ledger.claimants([NAME]) == {}


def test_what_the_gpu_machine_lacks_is_said_and_the_run_is_tried_again(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=says("12:00 looking\nerror: cffi is not installed: pip install cffi\n"))
    for _ in range(60):
        bench.step()
        if bench.job.summary and "cffi" in bench.job.summary:
            break
    assert (bench.job.state, bench.job.attempt) == (JobState.AWAITING_GPU, 1)
    assert bench.job.summary == "the gates could not be run: cffi is not installed: pip install cffi"
    bench.programs[Purpose.MEASURE] = measures(builders.honest())
    bench.go(JobState.ACCEPTED)


def test_a_bundle_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=measures(builders.honest()))
    bench.bundles = no_bundle
    for _ in range(20):
        bench.step()
    assert bench.job.state is JobState.AWAITING_GPU
    assert "has no bundle" in (bench.job.summary or "")


def test_cancelling_removes_the_box_and_gives_the_device_back(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=lambda _: None)
    for _ in range(12):
        bench.step()
    assert bench.ledger.claimants([NAME])
    bench.ledger.request_cancel(bench.id)
    bench.go(JobState.CANCELLED)
    assert bench.engine.list({}) == ()
    assert bench.ledger.claimants([NAME]) == {}


def test_another_worker_adopts_the_box_and_uses_its_results(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=lambda _: None)
    for _ in range(12):
        bench.step()
    name = bench.device_boxes[0]
    bench.runtime._pid = None  # the next step has a new spine, as another process would
    spec = bench.engine.spec(name)
    bench.engine.finish(name, measures(builders.honest())(spec) or FakeExit())
    bench.go(JobState.ACCEPTED)
    assert bench.device_boxes == [name]


def test_a_job_that_waits_for_a_gpu_of_its_own_host_is_not_settled(tmp_path: Path) -> None:
    bench = GpuBench(tmp_path, program=lambda _: None)
    bench.go(JobState.AWAITING_GPU)
    assert bench.ledger.waits([bench.id]) == {bench.id: WaitsFor.GPU}
    assert not settled([bench.job], bench.ledger.waits([bench.id]))
    away = GpuBench(tmp_path / "away", program=lambda _: None, devices=())
    away.go(JobState.AWAITING_GPU)
    assert settled([away.job], away.ledger.waits([away.id]))

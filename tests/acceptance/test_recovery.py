"""The worker is killed while the pipeline's box works: the box is adopted and the job ends as it would have."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from containers.engine import BoxStatus
from containers.engine.docker_engine import DockerEngine
from drivers.places import places
from farm.patch import Patch
from tests.acceptance.conftest import JOB_LIMIT_S
from tests.farm_command import FarmCommand
from tests.integration.workers.farm_under_test import wait_until
from workers import processes

pytestmark = [pytest.mark.docker, pytest.mark.redis, pytest.mark.toolchain]


def _running(engine: DockerEngine, farm: FarmCommand) -> BoxStatus:
    """The farm's box, once it has done a second's work."""
    end = time.monotonic() + JOB_LIMIT_S
    while time.monotonic() < end:
        named = farm.state / "farm-id"
        found = engine.list({"farm": named.read_text()}) if named.exists() else ()
        beats = list((farm.state / "jobs").glob("*/*/out/heartbeat"))
        if found and found[0].running and beats:
            return found[0]
        time.sleep(0.1)
    raise AssertionError("no box was started")


def _starts(since_s: float, job: str) -> list[str]:
    """Names of the job's containers that were started, one for each start."""
    label = f"label=tilefarm.job={job}"
    what = ("--filter", "event=start", "--filter", label, "--format", "{{.Actor.Attributes.name}}")
    command = ["docker", "events", "--since", f"{since_s:.0f}", "--until", f"{time.time():.0f}", *what]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def _artifacts(farm: FarmCommand, job: str) -> dict[str, str]:
    lines = farm.document("show", job)["artifacts"]
    return dict(line.split(" sha256:") for line in lines)


def test_a_killed_worker_costs_nothing_and_the_job_waits_for_its_gpu(
    farm: FarmCommand, engine: DockerEngine
) -> None:
    began_s = time.time()
    run = farm.document("submit", "--ops", "relu", "--accept", "measured")
    (job,) = run["jobs"]
    box = _running(engine, farm)
    where = places(farm.state)
    service = processes.recorded(where.service_pid)
    assert service is not None
    os.killpg(service.pid, signal.SIGKILL)
    wait_until(lambda: processes.recorded(where.service_pid) is None)
    after_kill = engine.inspect(box.name)
    assert after_kill is not None
    assert after_kill.started_at == box.started_at
    farm.document("up")
    ended = farm.document("status", run["id"], "--wait", code=3, limit_s=JOB_LIMIT_S)
    (job,) = ended["jobs"]
    assert (job["state"], job["attempt"]) == ("awaiting_gpu", 1)
    time.sleep(1.1)  # events are asked for by whole seconds
    assert _starts(began_s, job["id"]) == [box.name, box.name.replace("-pipeline", "-gate")]
    kept = _artifacts(farm, job["id"])
    patch = Patch.from_bytes(_artifact(farm, kept["patch"]))
    assert len(patch.changes) == 6
    shown = farm.document("show", job["id"])
    assert shown["rows_collected"] == shown["rows_expected"] == 8
    assert shown["signatures_same"] == shown["signatures_total"]
    farm.document("cancel", run["id"])


def _artifact(farm: FarmCommand, digest: str) -> bytes:
    return (Path(farm.state) / "artifacts" / digest[:2] / digest).read_bytes()

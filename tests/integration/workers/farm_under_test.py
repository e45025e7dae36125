"""A real Redis and a real worker process group around a scripted spine, with short times."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from drivers import redis_server
from drivers.embedded import connected
from drivers.places import places
from farm.codec import encode
from farm.job import FINAL, Accept, Job, JobState
from farm.ledger import Ledger
from farm.settings import Broker, Limits, Settings, Worker, dump
from workers import processes
from workers.app import open_queue
from workers.scripted import Script


class Farm:
    """One farm under test; everything it starts is ended by `close`."""

    def __init__(self, state: Path, **worker: Any) -> None:
        quick: dict[str, Any] = {
            "concurrency": 4,
            "lease_s": 2.0,
            "reconcile_s": 0.2,
            "reap_s": 1.0,
            "waiting_poll_s": 0.3,
            "spine": "workers.scripted:build_spine",
            "listeners": ("workers.scripted:build_blocker",),
        }
        plain = Settings(
            state=state,
            toolchain=state / "toolchain",
            worker=Worker(**{**quick, **worker}),
            broker=Broker(visibility_timeout_s=6 * 3600),
            limits=Limits(transient_backoff_s=0.0, lost_leases=50),
        )
        self.places = places(state)
        self.settings = connected(plain)
        self.ledger = Ledger(self.settings.ledger_url)
        self.scripted = state / "scripted"
        self.groups: list[processes.Identity] = []
        self._settings_path = self.places.settings

    def start_redis(self) -> None:
        redis_server.ensure(self.places, None)

    def kill_redis(self, *, remove_data: bool) -> None:
        running = processes.recorded(self.places.redis_pid)
        assert running is not None
        os.kill(running.pid, signal.SIGKILL)
        wait_until(lambda: not processes.alive(running))
        if remove_data:
            shutil.rmtree(self.places.redis_data)
            self.places.redis_data.mkdir()

    def start_worker(self, *, ready: bool = True) -> processes.Identity:
        self.places.ready.unlink(missing_ok=True)
        self._settings_path.write_text(dump(self.settings), encoding="utf-8")
        command = processes.python_module("workers.service", str(self._settings_path))
        pid = processes.start_detached(command, log=self.places.log("worker"), cwd=self.places.state)
        identity = processes.identify(pid)
        assert identity is not None
        self.groups.append(identity)
        if ready:
            wait_until(self.places.ready.exists)
        return identity

    def kill_worker(self) -> None:
        """SIGKILL the whole process group of the worker that was started last."""
        group = self.groups[-1]
        os.killpg(group.pid, signal.SIGKILL)
        wait_until(lambda: not processes.alive(group))

    def script(self, op: str, script: Script) -> None:
        self.scripted.mkdir(exist_ok=True)
        (self.scripted / f"{op}.json").write_text(json.dumps(encode(script)), encoding="utf-8")

    def submit(self, ops: Sequence[str], *, enqueue: bool = True, recipe: str = "scripted") -> tuple[Job, ...]:
        self.scripted.mkdir(exist_ok=True)
        run = self.ledger.submit(
            recipe=recipe,
            repo="none",
            push_to=None,
            base="0" * 40,
            accept=Accept.MEASURED,
            attempts=2,
            ops=ops,
        )
        jobs = self.ledger.jobs(run=run.id)
        if enqueue:
            queue = open_queue(self.settings)
            for job in jobs:
                queue.enqueue(job, 0.0)
        return jobs

    def blocked(self) -> set[str]:
        folder = self.scripted / "blocked"
        return {path.name for path in folder.glob("*") if path.suffix != ".go"}

    def let_go(self, job_id: str) -> None:
        (self.scripted / "blocked" / f"{job_id}.go").touch()

    def effects(self, job_id: str) -> set[str]:
        return {path.name for path in (self.scripted / "done" / job_id).glob("*") if path.name != "reaped"}

    def calls(self, job_id: str) -> list[tuple[int, int]]:
        """(number of the move, fence) of every step that was taken."""
        try:
            lines = (self.scripted / "calls").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        split = [line.split() for line in lines]
        return [(int(number), int(fence)) for job, number, fence in split if job == job_id]

    def standing(self) -> set[str]:
        """Ids of the jobs that are not final."""
        return {job.id for job in self.ledger.jobs(states=set(JobState) - FINAL)}

    def close(self) -> None:
        for group in self.groups:
            try:
                os.killpg(group.pid, signal.SIGCONT)
                os.killpg(group.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        redis_server.stop(self.places, grace_s=5.0)
        self.ledger.close()


def wait_until(condition: Callable[[], bool], *, limit_s: float = 60.0) -> None:
    """Fails the test when the condition does not come true in time."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s"
        time.sleep(0.05)

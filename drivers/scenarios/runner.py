"""Plays one scenario: a model server, a farm of its own that asks it, the ops submitted; then what is wrong."""

import contextlib
import hashlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from drivers.scenarios.canary import CANARY, in_boxes, in_files, in_git
from drivers.scenarios.checks import problems
from drivers.scenarios.contract import kept
from drivers.scenarios.modelserver import ModelServer, serving
from drivers.scenarios.play import Act, Play
from drivers.scenarios.scenario import Scenario
from drivers.scenarios.seen import Seen, look, tool_results
from drivers.scenarios.trialfarm import TrialFarm
from farm.data import config_folder
from farm.job import FINAL, JobState, ParkReason
from farm.ledger import Ledger
from farm.models import load_models
from farm.store import FolderStore

LOOK_S = 0.25
#: States in which the pipeline's box has left its result, and its folder is there.
_FINISHED = frozenset({JobState.CAPTURED, JobState.VERIFYING, JobState.LANDING})


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A play, what came of it and what is wrong with that."""

    play: Play
    seen: Seen
    problems: tuple[str, ...]  #: none: everything is as it must be
    bodies: tuple[bytes, ...] = ()  #: of `seen.calls`, as they came

    @property
    def line(self) -> str:
        """One line for people."""
        said = "as expected" if not self.problems else "; ".join(self.problems)
        return f"{self.play.name}: {said} ({self.seen.seconds:.0f} s, {len(self.seen.calls)} requests)"


def run(play: Play, environ: Mapping[str, str], *, keep: Path | None = None) -> Outcome:
    """Play it. `keep`: where its folder stays; else it goes away again."""
    scenario = play.model or Scenario(name=play.name)
    with _folder(play, keep) as folder, serving(scenario, record=folder / "requests.jsonl") as (url, server):
        farm = TrialFarm(folder, environ, play, url)
        try:
            seen = _watched(play, farm, server)
        finally:
            farm.down()
    found = problems(
        play,
        seen,
        prices=load_models(config_folder() / "models.toml"),
        key_sha256=hashlib.sha256(CANARY.encode()).hexdigest(),
    )
    return Outcome(play=play, seen=seen, problems=found, bodies=tuple(server.bodies))


def _watched(play: Play, farm: TrialFarm, server: ModelServer) -> Seen:
    began = time.monotonic()
    run_id = farm.submit(play)
    ledger = Ledger(f"sqlite:///{farm.state / 'ledger.db'}")
    watch = _Watch(play, farm, server, ledger, run_id)
    boxes = _Boxes(farm)
    try:
        while not watch.rests() and time.monotonic() - began < play.limit_s:
            time.sleep(LOOK_S)
        boxes.stop()
        farm.command("report", run_id)
        store = FolderStore(farm.state / "artifacts")
        jobs = ledger.jobs(run=run_id)
        key = CANARY.encode()
        leaks = [*boxes.leaks, *in_files(farm.state.parent, key), *in_git(farm.target, key)]
        return Seen(
            jobs=tuple(look(ledger, store, job, watch.parked.get(job.id, ())) for job in jobs),
            calls=tuple(server.calls),
            results=tool_results(server.bodies),
            usage=ledger.usage(run=run_id),
            acts=watch.done,
            files=watch.files,
            branches=farm.branches(),
            boxes=len(boxes.looked),
            leaks=tuple(dict.fromkeys(leaks)),
            seconds=time.monotonic() - began,
        )
    finally:
        boxes.stop()
        ledger.close()


class _Watch:
    """Looks at a run's jobs and does the play's acts when it is their time."""

    def __init__(self, play: Play, farm: TrialFarm, server: ModelServer, ledger: Ledger, run_id: str) -> None:
        self.parked: dict[str, list[ParkReason]] = {}
        self.files: int | None = None  #: of the contract that a box left
        self.done = 0
        self._acts = list(play.acts)
        self._counts = play.expect.files is not None
        self._rest = {*FINAL, JobState.AWAITING_GPU, play.expect.state}
        self._farm = farm
        self._server = server
        self._ledger = ledger
        self._run = run_id

    def rests(self) -> bool:
        """Whether every job has come to where it stays."""
        jobs = self._ledger.jobs(run=self._run)
        for job in jobs:
            if job.state is JobState.PARKED and job.park_reason is not None:
                self.parked.setdefault(job.id, []).append(job.park_reason)
            if self._counts and self.files is None and job.state in _FINISHED:
                self.files = kept(self._farm.state, job)
        if self._acts and self._due(self._acts[0], any(job.state is JobState.PARKED for job in jobs)):
            self.done += self._do(self._acts.pop(0))
            return False
        return all(job.state in self._rest for job in jobs)

    def _due(self, act: Act, parked: bool) -> bool:
        return parked if act.when == "parked" else len(self._server.calls) >= act.calls

    def _do(self, act: Act) -> int:
        if act.does == "raise_budget":
            self._farm.command("budget", self._run, act.usd)
            return 1
        return int(self._farm.kill_boxes("pipeline") > 0)


class _Boxes:
    """Searches the key in what the engine says of boxes and in their folders, while they are there."""

    def __init__(self, farm: TrialFarm) -> None:
        self.leaks: list[str] = []
        self.looked: set[str] = set()  #: boxes that were there to be looked at
        self._farm = farm
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._search, name="canary", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Search no more."""
        self._stopping.set()
        self._thread.join(60.0)

    def _search(self) -> None:
        key = CANARY.encode()
        try:
            while not self._stopping.wait(0.5):
                boxes = self._farm.boxes("-aq")
                self.looked.update(boxes)
                self.leaks += in_boxes(boxes, key)
                self.leaks += in_files(self._farm.state / "jobs", key)
        except Exception as error:  # a search that broke off has not found that there is nothing
            self.leaks.append(f"(the search broke off: {type(error).__name__}: {error})")


@contextlib.contextmanager
def _folder(play: Play, keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        folder = keep / play.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix=f"farm-{play.name}-", ignore_cleanup_errors=True) as made:
        yield Path(made)


#: What is told while plays run.
Say = Callable[[str], None]


def run_all(
    plays: tuple[Play, ...], environ: Mapping[str, str], *, say: Say, keep: Path | None = None
) -> tuple[Outcome, ...]:
    """Play them one after the other."""
    outcomes = []
    for play in plays:
        outcomes.append(run(play, environ, keep=keep))
        say(outcomes[-1].line)
    return tuple(outcomes)

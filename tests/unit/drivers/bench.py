"""A farm for tests of commands: a real ledger and store in a folder, minigym in memory, no engine."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from drivers.reading import Reader
from drivers.service import FarmService, Hooks, MemorySources
from drivers.shelf import FolderShelf
from farm.capture import read_tree
from farm.codec import encode
from farm.data import builtin_repos, config_folder
from farm.job import JobState, WaitsFor
from farm.ledger import TRACE, Change, Charge, Ledger
from farm.op import Op
from farm.recipe import Recipe
from farm.recipes import load
from farm.store import FolderStore
from farm.tree import Entry, Mode, Tree
from workers.livelogs import LiveLogs
from workers.places import places

REPO = "builtin:minigym"
BASE = "a" * 40
#: What is not Python in the repo `/broken`.
BROKEN_TEST = "tests/ops/test_relu.py"
WAY = (JobState.PREPARING, JobState.RUNNING, JobState.CAPTURED, JobState.VERIFYING, JobState.LANDING)


def _ops(recipe: Recipe, tree: Tree) -> tuple[Op, ...]:
    return load(recipe.conversion, recipe.layout).inventory(tree)


class Bench:
    """The service with everything that it needs, and ways to move its jobs."""

    def __init__(self, folder: Path, preflight: Sequence[Callable[[], object]] = ()) -> None:
        self.now = 1_700_000_000.0
        self.ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}", clock=lambda: self.now)
        self.store = FolderStore(folder / "artifacts")
        self.nudged: list[str] = []
        self.state = folder / "state"
        self.reader = Reader(
            ledger=self.ledger,
            store=self.store,
            reports=folder / "reports",
            live=LiveLogs(self.state).read,
            talk=lambda _job, _attempt: self.talk,
        )
        tree = read_tree(builtin_repos()["minigym"])
        bare = {"README.md": Entry(Mode.FILE, b"nothing here\n")}
        broken = {**tree, BROKEN_TEST: Entry(Mode.FILE, b"def (\n")}
        hopeless = {**tree, "src/minigym/ops/cutile/__init__.py": Entry(Mode.FILE, b"def (\n")}
        self.sources = MemorySources(
            {
                REPO: {BASE: tree},
                "/empty": {"e" * 40: bare},
                "/broken": {"b" * 40: broken},
                "/hopeless": {"c" * 40: hopeless},
            }
        )
        self.said: list[str] = []
        self.talk: list[dict[str, Any]] = []
        self.no_gateway: str | None = None
        self.stopped = False
        self.service = FarmService(
            ledger=self.ledger,
            reader=self.reader,
            sources=lambda: self.sources,
            shelf=FolderShelf(config_folder() / "recipes"),
            inventory=_ops,
            hooks=Hooks(
                preflight=preflight,
                nudge=self.nudged.extend,
                now=lambda: self.now,
                versions=lambda: {"cutile": "0.2.0"},
                say=self.said.append,
                stopped=lambda: self.stopped,
                gateway=lambda: self.no_gateway,
            ),
        )

    def advance(self, job_id: str, to: JobState, change: Change | None = None) -> None:
        """One transition under a lease of its own."""
        grant = self.ledger.acquire(job_id, "bench", ttl_s=60)
        assert grant is not None
        self.now += 1.0
        self.ledger.move(grant.job, to, change or Change())

    def wait_for_a_box(self, job_id: str) -> None:
        """Bring a job to its pipeline's box, of which there is none free."""
        for state in WAY[:2]:
            self.advance(job_id, state)
        grant = self.ledger.acquire(job_id, "bench", ttl_s=60)
        assert grant is not None
        self.ledger.stay(grant.job, Change(waits=WaitsFor.BOX))

    def box_writes(self, job_id: str, text: str) -> None:
        """A line in the log of the job's running box."""
        log = places(self.state, self.ledger.job(job_id)).out / "logs" / "A-1.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(text)

    def accept(self, job_id: str) -> None:
        """Bring a job all the way."""
        for state in WAY:
            self.advance(job_id, state)
        branch = f"farm-certified/cutile-rs/{self.ledger.job(job_id).op}"
        self.advance(job_id, JobState.ACCEPTED, Change(commit="c" * 40, branch=branch, summary="landed"))

    def keep(self, value: object) -> str:
        """An artifact's digest."""
        return self.store.put(json.dumps(encode(value)).encode())

    def fail(self, job_id: str, change: Change, trace: object | None = None) -> None:
        """Let a job fail in its pipeline."""
        for state in WAY[:2]:
            self.advance(job_id, state)
        artifacts = dict(change.artifacts)
        if trace is not None:
            artifacts[TRACE] = self.keep(trace)
        self.advance(
            job_id,
            JobState.FAILED,
            Change(fault=change.fault, summary=change.summary, charge=Charge.ATTEMPT, artifacts=artifacts),
        )

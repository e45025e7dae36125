"""A second conversion goes through the whole farm: workspace, boxes, capture, gates, landing."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from containers.engine.docker_engine import DockerEngine
from containers.toolchain import Toolchain
from farm.data import config_folder
from farm.job import FINAL, Accept, Job, JobState
from farm.ledger import Ledger
from farm.recipe import load_recipe
from farm.recipes import load
from farm.settings import Limits, Settings
from workers.assembly import farm_id
from workers.gitrepo import Git
from workers.repositories import Repositories
from workers.runtime import Runtime
from workers.tasks import advance

pytestmark = [pytest.mark.docker, pytest.mark.toolchain]

TEXT = b"one two three four five six seven eight nine ten eleven twelve\r\n\x00\xff"


def git(folder: Path, *args: str) -> bytes:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    env |= {f"GIT_{who}_{what}": "t@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *args]
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    for inner in ("ops", "copied"):
        (folder / inner).mkdir(parents=True)
    (folder / "ops" / "new.txt").write_bytes(TEXT)
    (folder / "ops" / "old.txt").write_bytes(TEXT + b"old")
    (folder / "copied" / "old.txt").write_bytes(TEXT + b"old")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "texts")
    return folder


def finish(ledger: Ledger, runtime: Runtime, job: Job) -> Job:
    end = time.monotonic() + 120
    while (job := ledger.job(job.id)).state not in FINAL:
        assert time.monotonic() < end, job
        due = advance(runtime, job.id)
        time.sleep(0.05 if due is None else min(due.after_s, 0.5))
    return job


@pytest.mark.parametrize("op", ["new", "old"])
def test_a_text_is_copied_judged_and_landed(
    tmp_path: Path, repo: Path, toolchain: Toolchain, engine: DockerEngine, op: str
) -> None:
    state = tmp_path / "state"
    settings = Settings(state=state, toolchain=toolchain.root, limits=Limits(min_free_bytes=1))
    recipe = load_recipe(config_folder() / "recipes" / "plain-copy")
    repositories = Repositories(state, Git(state / "git.config", os.environ), {})
    base = repositories.resolve(str(repo), None)
    conversion = load(recipe.conversion, recipe.layout)
    assert [found.name for found in conversion.inventory(repositories.read_commit_tree(str(repo), base))] == [
        "new",
        "old",
    ]
    ledger = Ledger(settings.ledger_url)
    run = ledger.submit(
        recipe=recipe.name,
        repo=str(repo),
        push_to=None,
        base=base,
        accept=Accept.CERTIFIED,
        attempts=1,
        ops=[op],
    )
    runtime = Runtime(settings)
    job = finish(ledger, runtime, ledger.jobs(run=run.id)[0])
    assert job.state is JobState.ACCEPTED, job.summary
    branch = f"farm-certified/plain-copy/{op}"
    assert job.branch == branch
    assert git(repo, "show", f"{branch}:copied/{op}.txt") == git(repo, "show", f"main:ops/{op}.txt")
    assert git(repo, "diff", "--name-only", "main", branch).split() == ([b"copied/new.txt"] if op == "new" else [])
    for thread in threading.enumerate():
        if thread.name == "aside":
            thread.join()
    assert engine.list({"farm": farm_id(state)}) == ()
    assert list((state / "jobs").glob("*/*")) == []
    runtime.ledger.close()
    ledger.close()

"""What both sides of the comparison work on: one small repo, one toolchain, one engine."""

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from containers import toolchain as toolchains
from containers.engine import BoxLimits, BoxSpec
from containers.images import embedded as embedded_image
from containers.lib import ensure_lib
from containers.spec import BoxFolders, BoxSettings, box_spec
from drivers import embedded
from farm.codec import encode
from farm.data import config_folder
from farm.job import FINAL, Accept, JobState
from farm.ledger import Ledger
from farm.orders import BoxOrder, Purpose
from farm.recipe import load_recipe
from farm.settings import Limits, Settings, load
from workers.app import open_queue

RECIPE = "plain-copy"
OP = "poem"
#: How long one job may take before the comparison is given up.
LIMIT_S = 120.0
#: How often the ledger is asked whether the job has ended.
LOOK_S = 0.025


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A running farm and everything that the script needs."""

    folder: Path
    repo: Path
    base: str  #: commit id
    settings: Settings  #: of the running farm

    def farm_s(self) -> float:
        """Seconds of one job, from its submission to its final state, which has to be ACCEPTED."""
        ledger, queue = Ledger(self.settings.ledger_url), open_queue(self.settings)
        ledger.runs()
        start = time.perf_counter()
        run = ledger.submit(
            recipe=RECIPE,
            repo=str(self.repo),
            push_to=None,
            base=self.base,
            accept=Accept.CERTIFIED,
            attempts=1,
            ops=[OP],
        )
        job = ledger.jobs(run=run.id)[0]
        queue.enqueue(job, 0.0)
        while job.state not in FINAL and time.perf_counter() - start < LIMIT_S:
            time.sleep(LOOK_S)
            job = ledger.job(job.id)
        seconds = time.perf_counter() - start
        ledger.close()
        if job.state is not JobState.ACCEPTED:
            raise SystemExit(f"the job ended as {job.state}: {job.summary}")
        return seconds

    def script_s(self) -> float:
        """Seconds of one run of job.sh."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            place = Path(name)
            place.chmod(0o755)
            script = Path(__file__).with_name("job.sh")
            env = {**_git_env(self.folder), "REPO": str(self.repo), "BASE": self.base, "OP": OP}
            env["BOX"] = shlex.join(self._docker(place))
            start = time.perf_counter()
            subprocess.run(["sh", str(script), name], env=env, check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - start

    def _docker(self, place: Path) -> list[str]:
        recipe_folder = config_folder() / "recipes" / RECIPE
        recipe = load_recipe(recipe_folder)
        order = BoxOrder(
            purpose=Purpose.PIPELINE,
            run="script",
            job="script",
            attempt=1,
            op=OP,
            recipe=RECIPE,
            conversion=recipe.conversion,
            source=recipe.source,
            target=recipe.target,
            gpu=self.settings.gpu.arch,
            executors=dict(recipe.executors),
            caps=dict(recipe.caps),
            stage_limit_s=recipe.limits.stage_limit_s,
            previous_trace=None,
        )
        (place / "order.json").write_text(json.dumps(encode(order)), encoding="utf-8")
        folders = BoxFolders(
            workspace=place / "work",
            out=place / "out",
            order=place / "order.json",
            lib=ensure_lib(self.settings.state / "lib"),
            recipe=recipe_folder,
        )
        limits = BoxLimits(memory_bytes=self.settings.boxes.memory_bytes, cpus=float(os.cpu_count() or 1))
        toolchain = toolchains.load(self.settings.toolchain)
        return docker_run(box_spec(order, folders, BoxSettings(farm="script", toolchain=toolchain, limits=limits)))


def docker_run(spec: BoxSpec) -> list[str]:
    """The command that runs a box as the farm's engine does, and removes it."""
    image = embedded_image()
    limits = spec.limits
    command = ["docker", "run", "--rm", "--init", "--network=none", "--read-only", "--cap-drop=ALL"]
    command += ["--security-opt=no-new-privileges:true", "--ipc=private", "--user=65534:65534"]
    command += [f"--memory={limits.memory_bytes}", f"--memory-swap={limits.memory_bytes}"]
    command += [f"--pids-limit={limits.pids}", f"--cpus={limits.cpus}", "--ulimit=core=0:0"]
    command += [f"--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size={limits.tmpfs_bytes}"]
    command += [f"--tmpfs={mask}:ro,noexec,nosuid,nodev,mode=755,size=4k" for mask in spec.masks]
    command += [f"--workdir={spec.workdir}"]
    command += [f"--env={name}={value}" for name, value in spec.env.items()]
    for mount in (*image.mounts, *spec.mounts):
        mode = "" if mount.writable else ",readonly"
        command.append(
            f"--mount=type=bind,source={mount.source},target={mount.target},bind-propagation=rprivate{mode}"
        )
    return [*command, image.tag, *spec.argv]


@contextmanager
def scene(environ: Mapping[str, str]) -> Iterator[Scene]:
    """A farm with a warm worker on a state folder of its own, and a target repo beside it; both end with it."""
    folder = Path(tempfile.mkdtemp(prefix="tilefarm-overhead-"))
    folder.chmod(0o755)
    settings = Settings(state=folder / "state", toolchain=load(environ).toolchain, limits=Limits(min_free_bytes=1))
    try:
        repo = folder / "repo"
        base = _make_repo(repo, _git_env(folder))
        yield Scene(folder=folder, repo=repo, base=base, settings=embedded.up(settings, wait_ready=True).settings)
    finally:
        embedded.down(settings)
        shutil.rmtree(folder)


def _make_repo(repo: Path, env: Mapping[str, str]) -> str:
    (repo / "ops").mkdir(parents=True)
    for number in range(30):
        (repo / "ops" / f"other{number}.txt").write_text(f"the text with number {number}\n" * 50)
    (repo / "ops" / f"{OP}.txt").write_text("a line that is to be copied\n" * 100)
    out = b""
    for command in ("init -q -b main", "add -A", "commit -q -m texts", "rev-parse HEAD"):
        done = subprocess.run(
            ["git", "-C", str(repo), *command.split()], env=env, check=True, stdout=subprocess.PIPE
        )
        out = done.stdout
    return out.decode().strip()


def _git_env(home: Path) -> dict[str, str]:
    who = {f"GIT_{role}_{part}": "t@localhost" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    safe = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", **safe, **who}

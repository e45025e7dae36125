"""The real things that commands work with, made from the settings when they are first needed.

They are imported then too: SDKs and the database library take longer to load than most commands to run.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivers.cli.context import Wiring
from drivers.cli.output import note
from farm.data import builtin_repos, config_folder
from farm.errors import BrokerUnavailable, EngineUnavailable, FarmError, NoSpace, ToolchainMissing
from farm.job import FINAL, JobState
from farm.views import CheckView, DoctorView, ServiceView, ToolchainView

if TYPE_CHECKING:
    from containers import toolchain
    from drivers.gates import GateDesk
    from drivers.service import FarmService
    from farm.job import Job
    from farm.ledger import Ledger
    from farm.op import Op
    from farm.recipe import Recipe
    from farm.settings import Settings
    from farm.tree import Tree
    from workers.repositories import Repositories


def real_wiring(environ: Mapping[str, str]) -> Wiring:
    """The wiring of the `farm` command in this environment; makes nothing yet."""
    machine = Machine(environ)
    return Wiring(
        service=machine.service,
        host=lambda: EmbeddedHost(machine),
        doctor=machine.doctor,
        probe=machine.probe,
        toolchain=lambda: UserToolchain(machine.settings, environ),
        torch_python=machine.torch_python,
        gates=machine.gates,
        advance=machine.advance,
        target_path=machine.target_path,
        stopped=machine.stopped,
        pause=time.sleep,
        clock=time.time,
    )


class Machine:
    """This machine and its state folder."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._with_keys: Mapping[str, str] = {}

    def has_ledger(self) -> bool:
        """Whether a ledger was made: a file that is not there is not made by looking."""
        url = self.settings.ledger_url
        return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()

    @cached_property
    def settings(self) -> Settings:
        """See farm.settings.load."""
        from farm import settings

        found = settings.load(self.environ)
        self._with_keys = settings.with_keys() if self.environ is os.environ else dict(self.environ)
        # From here on no child has the keys but the gateway.
        settings.drop_keys()
        return found

    @property
    def with_keys(self) -> Mapping[str, str]:
        """The environment that a gateway is started with."""
        return self._with_keys if self.settings else {}

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of the settings."""
        from farm.ledger import Ledger

        return Ledger(self.settings.ledger_url)

    @cached_property
    def repositories(self) -> Repositories:
        """The target repos of the state folder."""
        from workers.gitrepo import Git
        from workers.repositories import Repositories
        from workers.tentative import Tentative

        state = self.settings.state
        config = state / "git.config"
        tentative = Tentative(state, beside=(config,))
        return Repositories(state, Git(config, self.environ), builtin_repos(), tentative=tentative)

    def service(self, *, embedded: bool = True) -> FarmService:
        """The service; see ServiceMaker."""
        from drivers.reading import Reader
        from drivers.service import FarmService, Hooks
        from drivers.shelf import FolderShelf
        from farm.store import FolderStore
        from workers.livelogs import LiveLogs

        state = self.settings.state
        checks: list[Callable[[], object]] = [self._need_space, self._need_engine, self._need_toolchain]
        if embedded:
            checks = [self._need_broker, *checks, self._need_workers]
        return FarmService(
            ledger=self.ledger,
            reader=Reader(
                ledger=self.ledger,
                store=FolderStore(self.settings.artifacts),
                reports=state / "reports",
                live=LiveLogs(state).read,
                talk=self._talk,
            ),
            sources=lambda: self.repositories,
            shelf=FolderShelf(config_folder() / "recipes", self.settings.state),
            inventory=_inventory,
            hooks=Hooks(
                preflight=checks,
                nudge=self._nudge if embedded else lambda _: None,
                now=time.time,
                versions=self._versions,
                say=note,
                stopped=self.stopped,
                gateway=self._need_gateway if embedded else self._gateway_problem,
            ),
        )

    def _talk(self, job: Job, attempt: int) -> Sequence[Mapping[str, Any]]:
        from workers.gateway.place import transcript_path
        from workers.gateway.transcripts import lines

        return lines(transcript_path(self.settings.state, job.id, attempt))

    def torch_python(self) -> Path:
        """The toolchain's interpreter. Raises ToolchainMissing."""
        from containers import toolchain

        return toolchain.load(self.settings.toolchain).python

    def gates(self) -> GateDesk:
        """Bundles and results."""
        from drivers.gates import GateDesk

        return GateDesk(
            settings=self.settings,
            ledger=lambda: self.ledger,
            repositories=lambda: self.repositories,
            service=lambda: self.service(embedded=False),
            advance=self.advance,
        )

    def advance(self) -> Callable[[str], float | None]:
        """One step of a job, in this process."""
        from drivers import embedded
        from workers.runtime import Runtime
        from workers.tasks import advance

        runtime = Runtime(embedded.connected(self.settings))

        def take(job_id: str) -> float | None:
            due = advance(runtime, job_id)
            return None if due is None else due.after_s

        return take

    def target_path(self, repo: str) -> str:
        """Where a repo's branches can be looked at."""
        return self.repositories.location(repo)

    def stopped(self) -> bool:
        """Whether the embedded farm does not run; with a broker of its own, workers may be anywhere."""
        from drivers import embedded

        return self.settings.broker.url is None and not embedded.status(self.settings).running

    def doctor(self) -> DoctorView:
        """All checks of this machine."""
        from drivers import doctor
        from drivers.shelf import FolderShelf
        from farm.recipe import detect_errors

        state = self.settings.state
        shelf = FolderShelf(config_folder() / "recipes", self.settings.state)
        rust = "install Rust (https://rustup.rs); only `farm toolchain install` needs it"
        return doctor.run_checks(
            (
                ("python", lambda: doctor.python_version((sys.version_info.major, sys.version_info.minor))),
                ("git", lambda: doctor.program("git", "apt install git")),
                ("cargo", lambda: doctor.program("cargo", rust, needed=False)),
                ("engine", self._check_engine),
                ("toolchain", lambda: doctor.toolchain(lambda: self._toolchain().record.versions)),
                ("space", lambda: doctor.free_space(state, self._needed_bytes, _free_bytes(state))),
                ("ledger", lambda: doctor.ledger(lambda: len(self.ledger.runs()))),
                ("redis", lambda: doctor.broker(self._broker_problems)),
                (
                    "recipes",
                    lambda: doctor.recipes({name: detect_errors(shelf.folder(name)) for name in shelf.names()}),
                ),
                ("gateway", self._check_gateway),
                ("gpu", lambda: doctor.gpu(tuple(glob.glob("/dev/nvidia[0-9]*")))),
            )
        )

    def _check_gateway(self) -> CheckView:
        from drivers import doctor
        from workers.gateway.client import health
        from workers.gateway.place import gateway_place, process_file
        from workers.gateway.usable import key_problem, models_of

        models_of(self.settings)
        there = process_file(self.settings.state).exists()
        said = health(gateway_place(self.settings.state)) if there else None
        return doctor.gateway(said, key_problem(self.settings.gateway, self.with_keys))

    def probe(self) -> CheckView:
        """One tiny call of the model, through the gateway of the embedded farm, which it starts."""
        from drivers import doctor
        from workers.gateway.client import probe
        from workers.gateway.place import gateway_place

        problem = self._need_gateway()
        if problem is not None:
            return CheckView(name="model", level="error", detail="not asked", next_step=problem)
        limit_s = self.settings.gateway.silence_s + 10.0
        return doctor.model(probe(gateway_place(self.settings.state), limit_s))

    @property
    def _needed_bytes(self) -> int:
        return self.settings.limits.min_free_bytes

    def _toolchain(self) -> toolchain.Toolchain:
        from containers import toolchain

        return toolchain.load(self.settings.toolchain)

    def _versions(self) -> Mapping[str, str]:
        try:
            return self._toolchain().record.versions
        except ToolchainMissing:
            return {}

    def _check_engine(self) -> CheckView:
        from containers.engine.probe import probe
        from drivers import doctor

        found = probe(self.environ)
        return doctor.engine(found.facts, found.problem, found.next_step)

    def _need_engine(self) -> None:
        from containers.engine.probe import probe

        found = probe(self.environ)
        if not found.answers:
            raise EngineUnavailable(f"{found.problem}; {found.next_step}")

    def _need_toolchain(self) -> None:
        from containers.spec import check_place

        check_place(self._toolchain())

    def _need_space(self) -> None:
        state = self.settings.state
        free = _free_bytes(state)
        if free < self._needed_bytes:
            raise NoSpace(
                f"{free / 2**30:.1f} GiB are free in {state}, {self._needed_bytes / 2**30:.1f} GiB are needed; "
                "free space there, name another folder by TILEFARM_STATE, or lower limits.min_free_bytes"
            )

    def _need_workers(self) -> None:
        from drivers import embedded

        if self.settings.broker.url is None:
            embedded.up(self.settings)

    def _need_gateway(self) -> str | None:
        """Start the embedded farm's gateway; why there is none. With a given broker others start it."""
        from drivers import embedded
        from workers.gateway.usable import key_problem

        if self.settings.broker.url is not None:
            return self._gateway_problem()
        problem = key_problem(self.settings.gateway, self.with_keys)
        # One that runs already has a key, whatever this command knows.
        if problem is not None and self._gateway_problem() is not None:
            return problem
        embedded.up(self.settings, gateway=self.with_keys)
        return None

    def _gateway_problem(self) -> str | None:
        from workers.gateway.usable import gateway_problem

        return gateway_problem(self.settings)

    def _need_broker(self) -> None:
        from workers.redis_link import RedisLink

        if self.settings.broker.url is not None:
            RedisLink(self.settings.broker.url).ping()

    def _broker_problems(self) -> tuple[str, ...] | None:
        from drivers import embedded
        from workers.redis_link import RedisLink

        now = embedded.status(self.settings)
        if self.settings.broker.url is None and not now.redis_answers:
            return None
        return RedisLink(now.settings.broker.url or "").problems()

    def _nudge(self, job_ids: Sequence[str]) -> None:
        from drivers import embedded
        from workers.app import open_queue

        queue = open_queue(embedded.connected(self.settings))
        try:
            for job_id in job_ids:
                queue.enqueue(self.ledger.job(job_id), 0.0)
        except BrokerUnavailable:
            # The jobs are in the ledger; the reconciler enqueues them when Redis is back.
            return


class EmbeddedHost:
    """The embedded farm of the settings' state folder."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._settings = machine.settings

    def up(self) -> ServiceView:
        """See Host."""
        from drivers import embedded
        from workers.gateway.usable import key_problem

        machine = self._machine
        keyless = key_problem(self._settings.gateway, machine.with_keys) is not None
        embedded.up(self._settings, wait_ready=True, gateway=None if keyless else machine.with_keys)
        return self.status()

    def down(self) -> ServiceView:
        """See Host."""
        from drivers import embedded

        embedded.down(self._settings)
        return replace(self.status(), jobs_left=self._jobs_left(), boxes_left=self._boxes_left())

    def _jobs_left(self) -> tuple[str, ...]:
        if not self._machine.has_ledger():
            return ()
        states = set(JobState) - FINAL - {JobState.AWAITING_GPU}
        return tuple(job.id for job in self._machine.ledger.jobs(states=states))

    def _boxes_left(self) -> tuple[str, ...]:
        from containers.engine.docker_engine import DockerEngine

        named = self._settings.state / "farm-id"
        if not named.exists():
            return ()
        engine = DockerEngine(environment=self._machine.environ)
        try:
            return tuple(box.name for box in engine.list({"farm": named.read_text()}) if box.running)
        except EngineUnavailable:
            return ()
        finally:
            engine.close()

    def status(self) -> ServiceView:
        """See Host."""
        from drivers import embedded

        now = embedded.status(self._settings)
        tasks = self._settings.worker.concurrency or os.cpu_count() or 1
        return ServiceView(
            running=now.running,
            state_folder=str(now.state),
            workers=tasks if now.running else 0,
            gateway=now.gateway is not None,
        )

    def relay(self) -> int:
        """See Host."""
        from drivers import embedded
        from farm import logs
        from farm.errors import ConfigurationError
        from farm.settings import dump
        from workers.gateway import host
        from workers.gateway.keeper import Keeper
        from workers.gateway.place import gateway_place
        from workers.gateway.usable import key_problem, models_of
        from workers.redis_link import RedisLink

        full = embedded.connected(self._settings)
        problem = key_problem(full.gateway, self._machine.with_keys)
        if problem is not None:
            raise ConfigurationError(problem)
        RedisLink(full.broker.url or "", embedded=self._settings.broker.url is None).ping()
        models_of(full)
        running = host.pid(full)
        if running is not None:
            raise ConfigurationError(f"a gateway of this state folder runs (pid {running}); `farm down` stops it")
        logs.configure()
        place = gateway_place(full.state)
        place.settings.write_text(dump(full), encoding="utf-8")
        try:
            return Keeper(full, place.settings, self._machine.with_keys).run()
        finally:
            place.settings.unlink(missing_ok=True)

    def work(self) -> int:
        """See Host."""
        from drivers import embedded
        from drivers.places import places
        from farm import logs
        from farm.settings import dump
        from workers.redis_link import RedisLink
        from workers.service import Service

        full = embedded.connected(self._settings)
        RedisLink(full.broker.url or "", embedded=self._settings.broker.url is None).ping()
        logs.configure()
        path = places(full.state).state / "run" / f"worker-{os.getpid()}.json"
        path.write_text(dump(full), encoding="utf-8")
        try:
            Service(full, path).run()
        finally:
            path.unlink()
            path.with_suffix(".ready").unlink(missing_ok=True)
        return 0


class UserToolchain:
    """The toolchain folder of the settings."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._path = settings.toolchain
        self._environ = environ

    def status(self) -> ToolchainView:
        """See ToolchainHouse."""
        from containers import toolchain

        try:
            found = toolchain.load(self._path)
        except ToolchainMissing:
            return ToolchainView(path=str(self._path), installed=False, digest=None, versions={})
        return ToolchainView(
            path=str(found.root), installed=True, digest=found.record.digest, versions=found.record.versions
        )

    def install(self, say: Callable[[str], None]) -> ToolchainView:
        """See ToolchainHouse."""
        from containers.toolchain.install import Sources, install

        install(self._path.parent, Sources.packaged(), self._environ, say)
        return self.status()


def _inventory(recipe: Recipe, tree: Tree) -> tuple[Op, ...]:
    from farm import recipes

    return recipes.load(recipe.conversion, recipe.layout).inventory(tree)


def _free_bytes(folder: Path) -> int:
    """Free space where the folder is or will be."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        return shutil.disk_usage(there).free
    except OSError as error:
        raise FarmError(f"{there} cannot be looked at: {error}") from error

"""Puts a real spine together from settings: the one place where its parts are chosen."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from containers import toolchain as toolchains
from containers.access import box_user
from containers.box.gate.machine import CPU
from containers.engine import BoxLimits
from containers.engine.docker_engine import DockerEngine
from containers.lib import ensure_lib
from containers.spec import BoxSettings, check_place
from containers.toolchain.visible import index_folder
from farm.data import builtin_repos, config_folder
from farm.ledger import Ledger
from farm.mountindex import Mount
from farm.settings import GpuAccess, Settings, inherited
from farm.store import FolderStore
from workers.agents import Agents
from workers.benches import Benches
from workers.boxes import Boxes
from workers.builds import Builder
from workers.conversion import Conversion
from workers.devices import HostDevices
from workers.exhibits import Exhibits
from workers.frozen import FrozenRecipes
from workers.gitrepo import Git
from workers.gpu import GpuGates
from workers.jobbundles import JobBundles
from workers.leaks import LeakScanner
from workers.preparation import Preparer
from workers.repositories import Repositories


def build_spine(settings: Settings, ledger: Ledger) -> Conversion:
    """The spine of this host. Raises ToolchainMissing when there is no toolchain."""
    environ = inherited()
    state = settings.state
    toolchain = toolchains.load(settings.toolchain)
    check_place(toolchain)
    git = Git(state / "git.config", environ)
    repositories = Repositories(state, git, builtin_repos())
    engine = _engine(environ)
    farm = farm_id(state)
    boxes = Boxes(
        engine=engine,
        settings=_box_settings(settings, toolchain, farm),
        lock=state / "boxes.lock",
        most=settings.boxes.at_once or _cores(),
    )
    recipes = FrozenRecipes(config_folder() / "recipes", state)
    lib = ensure_lib(state / "lib")
    packages = Mount(name="farm packages", folder=lib)
    preparer = Preparer(
        repositories=repositories,
        git=git,
        recipes=recipes,
        toolchain=toolchain,
        scanner=LeakScanner(index_folder(toolchain), toolchain, (packages,)),
        environ=environ,
        min_free_bytes=settings.limits.min_free_bytes,
        gpu=settings.gpu.arch,
    )
    store = FolderStore(settings.artifacts)
    exhibits = Exhibits(repositories=repositories, builder=lambda: build_builder(settings), gpu=settings.gpu.arch)
    devices = HostDevices(settings.gpu)
    gpu = GpuGates(
        ledger=ledger,
        store=store,
        benches=Benches(
            engine=engine,
            settings=_box_settings(settings, toolchain, farm),
            gpu=settings.gpu,
            devices=devices,
            lock=state / "gpu.lock",
            apart=os.geteuid() == 0,
        ),
        devices=devices,
        settings=settings.gpu,
        state=state,
        bundles=JobBundles(
            ledger=ledger,
            store=store,
            exhibits=exhibits,
            recipes=recipes,
            toolchain=toolchain,
            builds=state / "builds",
            environ=environ,
            gpu=CPU if settings.gpu.access is GpuAccess.NONE else settings.gpu.arch,
        ),
    )
    return Conversion(
        ledger=ledger,
        store=store,
        engine=engine,
        boxes=boxes,
        preparer=preparer,
        repositories=repositories,
        recipes=recipes,
        lib=lib,
        state=state,
        farm=farm,
        versions=toolchain.record.versions,
        gpu=gpu,
        agents=Agents(settings, ledger),
    )


def build_builder(settings: Settings) -> Builder:
    """What builds libraries beside the farm of these settings. Raises ToolchainMissing."""
    environ = inherited()
    toolchain = toolchains.load(settings.toolchain)
    check_place(toolchain)
    # A name of its own: workers reap what carries their farm's and belongs to no job.
    own = f"{farm_id(settings.state)}-build"
    return Builder(
        engine=_engine(environ),
        settings=_box_settings(settings, toolchain, own),
        folder=settings.state / "builds",
        lib=ensure_lib(settings.state / "lib"),
        environ=environ,
    )


def _engine(environ: Mapping[str, str]) -> DockerEngine:
    user = box_user(os.geteuid(), os.getegid())
    return DockerEngine(environment=environ, user=f"{user.uid}:{user.gid}")


def _box_settings(settings: Settings, toolchain: toolchains.Toolchain, farm: str) -> BoxSettings:
    return BoxSettings(
        farm=farm,
        toolchain=toolchain,
        image=settings.boxes.image,
        limits=BoxLimits(memory_bytes=settings.boxes.memory_bytes, cpus=float(_cores())),
    )


def _cores() -> int:
    return os.cpu_count() or 1


def farm_id(state: Path) -> str:
    """The id of this state folder's farm, made once: boxes of other farms on the engine are left alone."""
    file = state / "farm-id"
    if not file.exists():
        state.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"farm-id.{os.getpid()}")
        new.write_text(secrets.token_hex(4))
        try:
            os.link(new, file)
        except FileExistsError:
            pass
        finally:
            new.unlink()
    return file.read_text()

"""Puts a real spine together from settings: the one place where its parts are chosen."""

import os
import secrets
from pathlib import Path

from containers import toolchain as toolchains
from containers.access import box_user
from containers.engine import BoxLimits
from containers.engine.docker_engine import DockerEngine
from containers.lib import ensure_lib
from containers.spec import BoxSettings, check_place
from containers.toolchain.visible import index_folder
from farm.data import builtin_repos, config_folder
from farm.ledger import Ledger
from farm.mountindex import Mount
from farm.settings import Settings, inherited
from farm.store import FolderStore
from workers.boxes import Boxes
from workers.conversion import Conversion
from workers.gitrepo import Git
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
    user = box_user(os.geteuid(), os.getegid())
    engine = DockerEngine(environment=environ, user=f"{user.uid}:{user.gid}")
    farm = farm_id(state)
    cores = os.cpu_count() or 1
    boxes = Boxes(
        engine=engine,
        settings=BoxSettings(
            farm=farm,
            toolchain=toolchain,
            image=settings.boxes.image,
            limits=BoxLimits(memory_bytes=settings.boxes.memory_bytes, cpus=float(cores)),
        ),
        lock=state / "boxes.lock",
        most=settings.boxes.at_once or cores,
    )
    recipes = config_folder() / "recipes"
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
        gpu=settings.gpu,
    )
    return Conversion(
        ledger=ledger,
        store=FolderStore(settings.artifacts),
        engine=engine,
        boxes=boxes,
        preparer=preparer,
        repositories=repositories,
        recipes=recipes,
        lib=lib,
        state=state,
        farm=farm,
        versions=toolchain.record.versions,
    )


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

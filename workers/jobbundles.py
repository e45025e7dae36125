"""Writes bundles of this farm's jobs, for `farm bundle` and for the boxes of GPU workers."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from containers.toolchain import Toolchain
from farm.bundle import Bundle
from farm.job import Job, Run
from farm.ledger import Ledger
from farm.store import ArtifactStore
from workers.bundles import BundleWriter, Exhibit
from workers.collector import collector_library
from workers.exhibits import Exhibits, Read, of_job
from workers.frozen import FrozenRecipes


def farm_version() -> str:
    """The version of this farm."""
    try:
        return version("tilefarm")
    except PackageNotFoundError:
        return "checkout"


def write_bundle(
    read: Read,
    exhibits: Sequence[Exhibit],
    folder: Path,
    *,
    gpu: str,
    toolchain: Toolchain,
    builds: Path,
    environ: dict[str, str],
) -> Bundle:
    """Write implementations of one commit as a bundle. Raises UsageError when `folder` holds other things.

    `builds` is a folder for what is compiled on the way.
    """
    writer = BundleWriter(
        recipe=read.recipe, conversion=read.conversion, gpu=gpu, versions=toolchain.record.versions
    )
    collector = collector_library(toolchain, builds, environ)
    bundle = writer.bundle(exhibits, farm=farm_version(), collector=collector)
    writer.write(bundle, folder)
    return bundle


class JobBundles:
    """The bundle of a job that waits for a GPU."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        store: ArtifactStore,
        exhibits: Exhibits,
        recipes: FrozenRecipes,
        toolchain: Toolchain,
        builds: Path,
        environ: dict[str, str],
        gpu: str,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._exhibits = exhibits
        self._recipes = recipes
        self._toolchain = toolchain
        self._builds = builds
        self._environ = environ
        self._gpu = gpu

    def __call__(self, run: Run, job: Job, folder: Path) -> Bundle:
        """Write it. Raises UsageError when the job has no library, RepositoryError, UnknownOp."""
        read = self._exhibits.read(self._recipes.folder(run.id, run.recipe), run.repo, run.base)
        return write_bundle(
            read,
            (of_job(self._ledger, self._store, read, job),),
            folder,
            gpu=self._gpu,
            toolchain=self._toolchain,
            builds=self._builds,
            environ=self._environ,
        )

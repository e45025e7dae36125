"""`farm bundle`: what is done, apart from words."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from drivers.requests import select_ops
from farm.data import config_folder
from farm.errors import UsageError
from farm.job import JobState
from farm.views import BundleSubjectView, BundleView

if TYPE_CHECKING:
    from drivers.service import FarmService
    from farm.ledger import Ledger
    from farm.settings import Settings
    from workers.builds import Builder
    from workers.bundles import Exhibit
    from workers.exhibits import Exhibits, Read
    from workers.repositories import Repositories

Say = Callable[[str], None]


class GateDesk:
    """Bundles of this machine's farm."""

    def __init__(
        self,
        *,
        settings: "Settings",
        ledger: Callable[[], "Ledger"],
        repositories: Callable[[], "Repositories"],
        service: Callable[[], "FarmService"],
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._repositories = repositories
        self._service = service

    def bundle_landed(
        self, ops: str, *, repo: str, base: str | None, recipe: str, folder: Path, say: Say
    ) -> BundleView:
        """Write a bundle of implementations that the target repo holds. Raises FarmError."""
        commit = self._repositories().resolve(repo, base)
        exhibits = self._exhibits()
        read = exhibits.read(recipe, repo, commit)
        landed = tuple(op for op in read.ops if op.landed)
        names = [op.name for op in landed] if ops == "all" else [op.name for op in select_ops(ops, read.ops)]
        return self._write(read, exhibits.landed(read, repo, commit, names, say), folder)

    def bundle_jobs(self, name: str, *, folder: Path) -> BundleView:
        """Write a bundle of a job, or of a run's jobs that wait for a GPU. Raises FarmError."""
        from farm.store import FolderStore
        from workers.exhibits import of_job

        ledger = self._ledger()
        jobs = [job for job in ledger.jobs(run=name) if job.state is JobState.AWAITING_GPU]
        if not jobs:
            if ledger.jobs(run=name):
                raise UsageError(f"no job of {name} waits for a GPU; see farm status {name}")
            jobs = [self._service().read.find_job(name)]
        run = ledger.run(jobs[0].run)
        read = self._exhibits().read(run.recipe, run.repo, run.base)
        store = FolderStore(self._settings.artifacts)
        return self._write(read, tuple(of_job(ledger, store, read, job) for job in jobs), folder)

    def _write(self, read: "Read", exhibits: tuple["Exhibit", ...], folder: Path) -> BundleView:
        from containers import toolchain
        from farm.settings import inherited
        from workers.bundles import BundleWriter
        from workers.collector import collector_library

        found = toolchain.load(self._settings.toolchain)
        collector = collector_library(found, self._settings.state / "builds", inherited())
        writer = BundleWriter(
            recipe=read.recipe,
            conversion=read.conversion,
            gpu=self._settings.gpu,
            versions=found.record.versions,
        )
        bundle = writer.bundle(exhibits, farm=farm_version(), collector=collector)
        writer.write(bundle, folder)
        return BundleView(
            folder=str(folder),
            digest=bundle.digest,
            gpu=bundle.gpu,
            bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
            subjects=tuple(
                BundleSubjectView(id=item.id, op=item.op, base=item.base, violations=item.violations)
                for item in bundle.subjects
            ),
        )

    def _exhibits(self) -> "Exhibits":
        from workers.exhibits import Exhibits

        return Exhibits(
            repositories=self._repositories(),
            recipes=config_folder() / "recipes",
            builder=self._builder,
            gpu=self._settings.gpu,
        )

    def _builder(self) -> "Builder":
        from workers.assembly import build_builder

        return build_builder(self._settings)


def farm_version() -> str:
    """The version of this farm."""
    try:
        return version("tilefarm")
    except PackageNotFoundError:
        return "checkout"

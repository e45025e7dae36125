"""`farm bundle`, `judge`, `accept`, `import`: what is done, apart from words."""

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from drivers.importing import Importer, KnownBundles
from drivers.requests import select_ops
from farm.data import config_folder
from farm.errors import UsageError
from farm.job import JobState
from farm.views import BundleSubjectView, BundleView, ImportView, VerifyView

if TYPE_CHECKING:
    from drivers.service import FarmService
    from farm.ledger import Ledger
    from farm.measured.model import Measured
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
        advance: Callable[[], Callable[[str], float | None]],
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._repositories = repositories
        self._service = service
        self._advance = advance
        self._known = KnownBundles(settings.state / "bundles")

    def bundle_landed(
        self, ops: str, *, repo: str, base: str | None, recipe: str, folder: Path, say: Say
    ) -> BundleView:
        """Write a bundle of implementations that the target repo holds. Raises FarmError."""
        from workers.tentative import tentatively

        with tentatively(self._repositories()):
            commit = self._repositories().resolve(repo, base)
            exhibits = self._exhibits()
            read = exhibits.read(self._recipe(recipe), repo, commit)
            landed = tuple(op for op in read.ops if op.landed)
            names = [op.name for op in landed] if ops == "all" else [op.name for op in select_ops(ops, read.ops)]
            return self._write(read, exhibits.landed(read, repo, commit, names, say), folder)

    def bundle_jobs(self, name: str, *, folder: Path) -> BundleView:
        """Write a bundle of a job, or of a run's jobs that wait for a GPU. Raises FarmError."""
        from farm.store import FolderStore
        from workers.exhibits import of_job
        from workers.frozen import FrozenRecipes

        ledger = self._ledger()
        jobs = [job for job in ledger.jobs(run=name) if job.state is JobState.AWAITING_GPU]
        if not jobs:
            if ledger.jobs(run=name):
                raise UsageError(f"no job of {name} waits for a GPU; see farm status {name}")
            jobs = [self._service().read.find_job(name)]
        run = ledger.run(jobs[0].run)
        frozen = FrozenRecipes(config_folder() / "recipes", self._settings.state)
        read = self._exhibits().read(frozen.folder(run.id, run.recipe), run.repo, run.base)
        store = FolderStore(self._settings.artifacts)
        return self._write(read, tuple(of_job(ledger, store, read, job) for job in jobs), folder)

    def take(self, folders: Sequence[Path], bundles: Sequence[Path]) -> tuple[ImportView, "tuple[Measured, ...]"]:
        """Import results folders, see Importer.take."""
        from farm.store import FolderStore

        importer = Importer(
            known=self._known,
            ledger=self._ledger,
            store=lambda: FolderStore(self._settings.artifacts),
            advance=self._advance,
            pause=time.sleep,
        )
        return importer.take(folders, bundles)

    def pictures(self, measured: "Sequence[Measured]") -> tuple[str, str]:
        """A Markdown table and an SVG chart of rulings."""
        from farm.measured.chart import bar_chart, table

        return table(measured), bar_chart(measured, title="Speedup of the target implementations")

    def run(self, bundle: Path, results: Path, words: Sequence[str]) -> int:
        """Run a bundle's gates here; the runner's exit code, its lines on stderr. Raises UsageError."""
        if not (bundle / "run").is_file():
            raise UsageError(f"{bundle} is no bundle: it has no program `run`; `farm bundle` writes one")
        program = [sys.executable, str(bundle / "run"), "-o", str(results), *words]
        return subprocess.run(program, stdout=sys.stderr, check=False).returncode

    def verify(
        self, what: str, *, repo: str, evidence: Path | None, out: Path | None
    ) -> tuple[VerifyView, Mapping[str, bytes]]:
        """Repeat the decision of a commit, or of an evidence in a folder, and the evidence's files.

        `out` gets a commit's evidence.
        """
        from drivers.verifying import read_folder, verify_commit, verify_folder, write_files
        from farm.recipe import load_recipe
        from farm.recipes import Conversion, load
        from farm.store import FolderStore
        from workers.tentative import tentatively

        if Path(what).is_dir():
            return verify_folder(Path(what)), read_folder(Path(what))

        def conversion(name: str) -> Conversion:
            recipe = load_recipe(self._recipe(name))
            return load(recipe.conversion, recipe.layout)

        store, repositories = FolderStore(self._settings.artifacts), self._repositories()
        with tentatively(repositories):
            view, files = verify_commit(repositories, conversion, repo, what, store=store, folder=evidence)
        if out is not None:
            write_files(files, out)
        return view, files

    def replay(
        self, view: VerifyView, files: Mapping[str, bytes], *, repo: str, bundle: Path | None, say: Say
    ) -> VerifyView:
        """Run the subject of a proven evidence again and add what came of it.

        Without `bundle` it is written anew from the landed commit, whose library is built in a box.
        """
        from drivers.replaying import need_gpu, replay
        from farm.evidence import CLAIM, MEASURED, Claim, read_document
        from farm.measured.model import Measured

        evidence, claim = read_document(Measured, files, MEASURED), read_document(Claim, files, CLAIM)
        if evidence is None or claim is None:
            raise UsageError(f"{view.what} rests on a certificate, and a replay is of measurements")
        place = self._settings.state / "replays" / time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        if bundle is None:
            need_gpu()
            if Path(view.what).is_dir():
                raise UsageError("an evidence in a folder is replayed from its bundle: give it by --bundle DIR")
            bundle = place / "bundle"
            self.bundle_landed(evidence.op, repo=repo, base=view.what, recipe=claim.recipe, folder=bundle, say=say)
        found = replay(bundle, evidence, place / "results", run=self.run)
        return dataclasses.replace(view, replay=found)

    def _write(self, read: "Read", exhibits: tuple["Exhibit", ...], folder: Path) -> BundleView:
        from containers import toolchain
        from farm.settings import inherited
        from workers.jobbundles import write_bundle

        bundle = write_bundle(
            read,
            exhibits,
            folder,
            gpu=self._settings.gpu.arch,
            toolchain=toolchain.load(self._settings.toolchain),
            builds=self._settings.state / "builds",
            environ=inherited(),
        )
        self._known.add(bundle)
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

    def _recipe(self, name: str) -> Path:
        from drivers.shelf import FolderShelf

        return FolderShelf(config_folder() / "recipes", self._settings.state).folder(name)

    def _exhibits(self) -> "Exhibits":
        from workers.exhibits import Exhibits

        return Exhibits(
            repositories=self._repositories(),
            builder=self._builder,
            gpu=self._settings.gpu.arch,
        )

    def _builder(self) -> "Builder":
        from workers.assembly import build_builder

        return build_builder(self._settings)

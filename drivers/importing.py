"""`farm import`: results of GPU machines, ruled on again from their raw records and given to their jobs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from farm.bundle import Bundle, parse_bundle, read_bundle
from farm.errors import BundleRefused, UnknownJob
from farm.gates import Ruling
from farm.job import FINAL, WAITING, Job, JobState
from farm.measured.model import Measured
from farm.packed import unpacked
from farm.results import Gathered, read_results
from farm.views import ImportedView, ImportView

if TYPE_CHECKING:
    from farm.ledger import Ledger
    from farm.store import ArtifactStore


class KnownBundles:
    """Manifests of the bundles that this farm wrote: results of others prove nothing about its jobs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, bundle: Bundle) -> None:
        """Remember a bundle."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{bundle.digest}.json"
        partial = path.with_suffix(".partial")
        partial.write_bytes(bundle.to_bytes())
        partial.replace(path)

    def find(self, digest: str, folders: Sequence[Path]) -> Bundle:
        """The bundle of that digest: a known one, else one of the folders. Raises BundleRefused."""
        path = self._folder / f"{digest}.json"
        if path.is_file():
            bundle = parse_bundle(path.read_bytes())
            if bundle.digest == digest:
                return bundle
        for folder in folders:
            bundle = read_bundle(folder)
            if bundle.digest == digest:
                return bundle
        raise BundleRefused(
            f"the results are of bundle {digest[:12]}, which this farm did not write; give its folder by --bundle"
        )

    def wrote(self, digest: str) -> bool:
        """Whether this farm wrote it."""
        return (self._folder / f"{digest}.json").is_file()


class Importer:
    """Reads results, and lets the jobs that they are about go on."""

    def __init__(
        self,
        *,
        known: KnownBundles,
        ledger: Callable[[], "Ledger"],
        store: Callable[[], "ArtifactStore"],
        advance: Callable[[], Callable[[str], float | None]],
        pause: Callable[[float], None],
    ) -> None:
        self._known = known
        self._ledger = ledger
        self._store = store
        self._advance = advance
        self._pause = pause

    def take(self, folders: Sequence[Path], bundles: Sequence[Path]) -> tuple[ImportView, tuple[Measured, ...]]:
        """Rule on everything in results folders, or such folders packed; jobs that wait for it go on here.

        Raises BundleRefused before anything is written when one of them is not as it was written.
        """
        with ExitStack() as opened:
            return self._take([opened.enter_context(unpacked(folder)) for folder in folders], bundles)

    def _take(self, folders: Sequence[Path], bundles: Sequence[Path]) -> tuple[ImportView, tuple[Measured, ...]]:
        from farm.rulings import cases

        runs = [(folder, read_results(folder)) for folder in folders]
        manifests = {run.results.bundle: self._known.find(run.results.bundle, bundles) for _, run in runs}
        found: list[Measured] = []
        rows: list[ImportedView] = []
        for digest, bundle in manifests.items():
            own = [(folder, run) for folder, run in runs if run.results.bundle == digest]
            ruled = [case.measured for case in cases(bundle, [run for _, run in own])]
            found += ruled
            jobs = self._supply(bundle, own)
            rows += [_row(measured, jobs.get(measured.subject)) for measured in ruled]
        missing = tuple(
            f"{part.subject} {part.part}: {part.ended.value}, {part.reason or 'no reason known'}"
            for _, run in runs
            for part in run.results.parts
            if part.reason is not None
        )
        notes = tuple(dict.fromkeys(note for _, run in runs for note in run.results.notes))
        view = ImportView(subjects=tuple(rows), incomplete=missing, notes=notes, exit_code=exit_code(rows))
        return view, tuple(found)

    def _supply(self, bundle: Bundle, runs: Sequence[tuple[Path, Gathered]]) -> Mapping[str, Job]:
        """Give jobs their measurements and let them go on; the jobs as they are then."""
        if not self._known.wrote(bundle.digest):
            return {}
        from workers.measuring import MEASUREMENTS, keep_run, with_run

        ledger, store = self._ledger(), self._store()
        found: dict[str, Job] = {}
        for subject in bundle.subjects:
            try:
                job = ledger.job(subject.id)
            except UnknownJob:
                continue
            own = [folder for folder, run in runs if any(key[0] == subject.id for key in run.parts)]
            if job.state is JobState.AWAITING_GPU and own:
                artifacts = dict(ledger.artifacts(job.id, attempt=job.attempt))
                for folder in own:
                    artifacts[MEASUREMENTS] = with_run(store, artifacts, keep_run(store, bundle, folder))
                if ledger.supply(job, {MEASUREMENTS: artifacts[MEASUREMENTS]}):
                    self._go(job.id)
            found[job.id] = ledger.job(job.id)
        return found

    def _go(self, job_id: str) -> None:
        """Take the job's steps here until it is final or waits; another worker may take some of them."""
        advance = self._advance()
        while True:
            due_s = advance(job_id)
            if self._ledger().job(job_id).state in FINAL | WAITING:
                return
            self._pause(0.2 if due_s is None else due_s)


def exit_code(rows: Sequence[ImportedView]) -> int:
    """4 when something failed, else 3 while something is open, else 0; a job counts by its state."""
    states = {row.state for row in rows if row.state is not None}
    rulings = {gate.ruling for row in rows if row.state is None for gate in row.gates}
    if Ruling.FAIL in rulings or states & {JobState.FAILED, JobState.CANCELLED}:
        return 4
    return 0 if rows and rulings <= {Ruling.PASS} and states <= {JobState.ACCEPTED} else 3


def _row(measured: Measured, job: Job | None) -> ImportedView:
    return ImportedView(
        subject=measured.subject,
        op=measured.op,
        gpu=measured.gpu,
        passed=measured.passed,
        gates=measured.gates,
        rows_expected=measured.rows_expected,
        rows_collected=measured.rows_collected,
        low=measured.low,
        ratio=measured.ratio,
        high=measured.high,
        flags=len(measured.flags),
        state=None if job is None else job.state,
        summary=None if job is None else job.summary,
        commit=None if job is None else job.commit,
        branch=None if job is None else job.branch,
    )

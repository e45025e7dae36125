"""`farm verify --replay`: an evidence's subject through the gates again, on this machine."""

import glob
from collections.abc import Callable, Sequence
from pathlib import Path

from containers.box.gate.machine import CPU
from farm.bundle import Bundle, read_bundle
from farm.errors import BundleRefused, FarmError, UsageError
from farm.measured.model import Measured
from farm.replay import compare
from farm.results import RESULTS, read_results
from farm.views import ReplayView

#: Runs a bundle's gates into a results folder with options; the runner's exit code.
Run = Callable[[Path, Path, Sequence[str]], int]


def need_gpu() -> None:
    """Raises UsageError on a machine without one."""
    if not glob.glob("/dev/nvidia[0-9]*"):
        raise UsageError(
            "a replay needs a GPU, and this machine has none; without --replay the decision is recomputed from "
            "the raw records"
        )


def replay(bundle: Path, evidence: Measured, results: Path, *, run: Run, words: Sequence[str] = ()) -> ReplayView:
    """Run the bundle's subject that the evidence is of, and compare. `words` are options of the runner.

    Raises BundleRefused for a bundle that holds no such patch, UsageError without a GPU that it needs.
    """
    from farm.rulings import case_of

    manifest = read_bundle(bundle)
    subject = _subject(manifest, evidence)
    if manifest.gpu != CPU:
        need_gpu()
    run(bundle, results, ["--subjects", subject, *words])
    if not (results / RESULTS).is_file():
        raise FarmError(f"the gates of {bundle} could not be run; see above")
    case = case_of(manifest, [read_results(results)], subject)
    if case is None:
        raise FarmError(f"the results in {results} hold nothing about {subject}")
    again = case.measured
    found = compare(evidence, again)
    return ReplayView(
        results=str(results),
        gpu=again.gpu,
        agrees=not found.differences,
        differences=found.differences,
        notes=found.notes,
        gates=again.gates,
        low=again.low,
        ratio=again.ratio,
        high=again.high,
    )


def _subject(manifest: Bundle, evidence: Measured) -> str:
    for item in manifest.subjects:
        if (item.op, item.patch_sha256) == (evidence.op, evidence.patch_sha256):
            return item.id
    held = ", ".join(f"{item.op} {item.patch_sha256[:12]}" for item in manifest.subjects)
    raise BundleRefused(
        f"the evidence is of {evidence.op} with patch {evidence.patch_sha256[:12]}; the bundle holds {held}"
    )

"""Measurements that came from a GPU machine: kept with their job, ruled on again whenever they count."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from containers.box.files import parse_json
from farm.acceptance import Decision, Judgement, decide, with_measured
from farm.bundle import Bundle, parse_bundle
from farm.codec import encode
from farm.errors import BundleRefused
from farm.events import GateRuled
from farm.fault import Fault
from farm.gates import GateName, GateReport, Ruling
from farm.job import Accept, JobState
from farm.measured.model import Measured
from farm.report.evidence import GATES
from farm.results import RESULTS, Gathered, gathered, parse_results
from farm.store import ArtifactStore
from workers.spine import Advance, Failed, Notes, StepOutcome

if TYPE_CHECKING:
    from farm.rulings import Case

#: Artifact of an attempt: which measurements came for it.
MEASUREMENTS = "measurements.json"
#: Artifact of an attempt: `farm.measured.model.Measured`, as computed here from the raw records.
MEASURED = "measured.json"
#: Artifact of an attempt: the measurements that were ruled on last.
RULED = "measurements-ruled.json"


@dataclass(frozen=True, kw_only=True)
class KeptRun:
    """One run of a bundle in the artifact store: file name to digest."""

    bundle: str  #: sha256 of the manifest, which is the bundle's digest
    files: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """measurements.json: every run of a bundle that measured an attempt's patch."""

    runs: tuple[KeptRun, ...] = ()
    schema: int = 1


def keep_run(store: ArtifactStore, bundle: Bundle, folder: Path) -> KeptRun:
    """Put a results folder and its bundle's manifest into the store. Raises BundleRefused."""
    return keep_files(store, bundle, lambda name: (folder / name).read_bytes())


def keep_files(store: ArtifactStore, bundle: Bundle, read: Callable[[str], bytes]) -> KeptRun:
    """The same of results whose files `read` gives by name, or raises OSError. Raises BundleRefused.

    They are checked against their digests, and must be of this bundle.
    """
    results = parse_results(read(RESULTS))
    if results.bundle != bundle.digest:
        raise BundleRefused(f"{RESULTS} is of bundle {results.bundle[:12]}, not of {bundle.digest[:12]}")
    gathered(results, read)
    names = {RESULTS, *(part.file for part in results.parts if part.file is not None)}
    files = {name: store.put(read(name)) for name in sorted(names)}
    return KeptRun(bundle=store.put(bundle.to_bytes()), files=files)


def with_run(store: ArtifactStore, artifacts: Mapping[str, str], run: KeptRun) -> str:
    """The digest of an attempt's measurements with one run more; the same run twice counts once."""
    known = _measurements(store, artifacts)
    runs = known.runs if run in known.runs else (*known.runs, run)
    return store.put(json.dumps(encode(Measurements(runs=runs)), sort_keys=True).encode())


def unruled(artifacts: Mapping[str, str]) -> bool:
    """Whether measurements came that nothing was concluded from yet."""
    return MEASUREMENTS in artifacts and artifacts[MEASUREMENTS] != artifacts.get(RULED)


def case(store: ArtifactStore, artifacts: Mapping[str, str], job: str) -> "Case | None":
    """What was measured of an attempt, from the raw records. Raises BundleRefused, ArtifactMissing.

    Of several bundles the last that measured the job counts: a bundle is written for one patch.
    """
    from farm.rulings import case_of  # with numpy, which a worker does without until then

    groups: dict[str, list[Gathered]] = {}
    for run in _measurements(store, artifacts).runs:
        groups.setdefault(run.bundle, []).append(_gathered(store, run))
    found = None
    for digest, runs in groups.items():
        found = case_of(parse_bundle(store.get(digest)), runs, job) or found
    return found


def _gathered(store: ArtifactStore, run: KeptRun) -> Gathered:
    results = parse_results(store.get(run.files[RESULTS]))
    return gathered(results, lambda name: store.get(run.files[name]))


def conclude(
    store: ArtifactStore,
    artifacts: Mapping[str, str],
    job: str,
    *,
    patch_sha256: str,
    accept: Accept,
    certifiable: Collection[GateName],
) -> StepOutcome:
    """What follows for a measured job from what its gate box said and what the raw records say."""
    known = case(store, artifacts, job)
    if known is None:
        return Failed(fault=Fault.INFRA, summary="the measurements hold nothing about this job", final=True)
    found = known.measured
    said = parse_json(store.get(artifacts[GATES]), GateReport)
    decision = decide(said, patch_sha256=patch_sha256, accept=accept, certifiable=certifiable, measured=found)
    report = with_measured(said, found)
    kept = {
        RULED: artifacts[MEASUREMENTS],
        GATES: _put(store, report),
        MEASURED: _put(store, found),
    }
    source = f"measurements {artifacts[MEASUREMENTS][:12]} on {found.gpu}"
    ruled = tuple(
        GateRuled(box=source, gate=r.gate, ruling=r.ruling, basis=r.basis, summary=r.summary) for r in found.gates
    )
    notes = Notes(artifacts=kept, gates=report.gates, events=ruled)
    match decision.judgement:
        case Judgement.LAND:
            return Advance(to=JobState.LANDING, notes=notes)
        case Judgement.AWAIT_GPU | Judgement.REPEAT:  # a GPU's trouble is no reason to convert again
            return Advance(to=JobState.AWAITING_GPU, notes=replace(notes, summary=why_open(found, decision)))
        case Judgement.REJECT:
            return Failed(fault=decision.fault or Fault.KERNEL, summary=decision.reason, notes=notes)


def _put(store: ArtifactStore, record: Measured | GateReport) -> str:
    return store.put(json.dumps(encode(record), indent=1, sort_keys=True).encode())


def why_open(found: Measured, decision: Decision) -> str:
    """Why a measured job still waits, in a sentence."""
    gates = [result for result in found.gates if result.ruling is not Ruling.PASS]
    if decision.judgement is Judgement.REPEAT or not gates:
        return decision.reason
    said = "; ".join(f"{result.gate.value} {result.ruling.value}: {result.summary}" for result in gates)
    return f"{said}; run the bundle once more and import both"


def _measurements(store: ArtifactStore, artifacts: Mapping[str, str]) -> Measurements:
    if MEASUREMENTS not in artifacts:
        return Measurements()
    return parse_json(store.get(artifacts[MEASUREMENTS]), Measurements)

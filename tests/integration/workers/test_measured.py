"""Jobs that waited for a GPU go on when results come, and only as far as the raw records carry them."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from drivers.importing import Importer, KnownBundles
from drivers.verifying import verify_commit, verify_folder, write_files
from farm.bundle import Bundle
from farm.errors import BundleRefused, RepositoryError
from farm.evidence import verify
from farm.gates import Ruling
from farm.job import Accept, JobState
from farm.measured.records import Outcome, Phase
from farm.patch import Patch
from farm.recipe import load_recipe
from farm.recipes import Conversion, load
from farm.views import VerifyView
from tests.integration.workers.conversion_bench import RECIPES, Bench
from tests.integration.workers.measurements import MACHINE, bundle_of, certifies_and_builds, write_results
from tests.unit.farm.measured import builders
from workers.evidence import EVIDENCE, stored_evidence
from workers.tasks import advance


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, accept=Accept.MEASURED, gate=certifies_and_builds)
    bench.go(JobState.AWAITING_GPU)
    return bench


def importer(bench: Bench, tmp_path: Path, *known: Bundle) -> Importer:
    bundles = KnownBundles(tmp_path / "bundles")
    for bundle in known:
        bundles.add(bundle)

    def step(job_id: str) -> float | None:
        due = advance(bench.runtime, job_id)
        return None if due is None else due.after_s

    return Importer(
        known=bundles,
        ledger=lambda: bench.ledger,
        store=lambda: bench.store,
        advance=lambda: step,
        pause=lambda _: None,
    )


def test_measured_passes_land_the_job(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    results = write_results(tmp_path / "r", bundle, builders.honest())
    view, measured = importer(bench, tmp_path, bundle).take([results], [])
    assert [gate.ruling for gate in view.subjects[0].gates] == [Ruling.PASS] * 3
    assert (bench.job.state, view.exit_code, measured[0].passed) == (JobState.ACCEPTED, 0, True)
    tree = bench.repositories.remote_branch("builtin:minigym", "farm/cutile-rs/relu")
    assert tree == bench.job.commit == view.subjects[0].commit
    kept = bench.ledger.artifacts(bench.id, attempt=1)
    assert {"measurements.json", "measured.json"} <= kept.keys()
    evidence = stored_evidence(bench.store, kept[EVIDENCE])
    patch = Patch.from_bytes(evidence["patch"]).digest
    assert verify(evidence, patch_sha256=patch, digest=kept[EVIDENCE]).proven
    for name, data in evidence.items():
        spoiled = {**evidence, name: data[:-1] + bytes([data[-1] ^ 1])}
        assert not verify(spoiled, patch_sha256=patch, digest=kept[EVIDENCE]).proven


def test_a_landed_commit_is_proven_by_its_evidence_and_no_other_commit_is(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    importer(bench, tmp_path, bundle).take([write_results(tmp_path / "r", bundle, builders.honest())], [])

    def conversion(name: str) -> Conversion:
        recipe = load_recipe(RECIPES / name)
        return load(recipe.conversion, recipe.layout)

    def check(revision: str, folder: Path | None = None) -> tuple[VerifyView, dict[str, bytes]]:
        repo = "builtin:minigym"
        return verify_commit(bench.repositories, conversion, repo, revision, store=bench.store, folder=folder)

    view, files = check("farm/cutile-rs/relu")
    assert (view.what, view.proven, view.problems) == (bench.job.commit, True, ())
    assert [gate.ruling for gate in view.gates] == [Ruling.PASS] * 3
    write_files(files, tmp_path / "e")
    assert verify_folder(tmp_path / "e").proven
    (tmp_path / "e" / "records.jsonl.gz").write_bytes(gzip.compress(b""))
    for spoiled in (check("farm/cutile-rs/relu", tmp_path / "e")[0], verify_folder(tmp_path / "e")):
        assert not spoiled.proven
        assert "records.jsonl.gz" in spoiled.problems[0]
    with pytest.raises(RepositoryError, match="no Farm-Evidence trailer"):
        check("main")


def test_a_failed_row_ends_the_job_and_nothing_lands(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    bad = [
        replace(record, outcome=Outcome.FAILED, reason="AssertionError")
        if getattr(record, "phase", None) is Phase.TARGET and hasattr(record, "outcome")
        else record
        for record in builders.honest()
    ]
    view, _ = importer(bench, tmp_path, bundle).take([write_results(tmp_path / "r", bundle, bad)], [])
    assert (bench.job.state, view.exit_code) == (JobState.FAILED, 4)
    assert "correctness" in (bench.job.summary or "")
    assert bench.repositories.remote_branch("builtin:minigym", "farm/cutile-rs/relu") is None


def test_what_was_not_measured_keeps_the_job_waiting_until_it_is(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    whole = builders.honest()
    timing = [record for record in whole if type(record).__name__ in ("TimedCall", "ConfigFact")]
    rows = [record for record in whole if record not in timing]
    first = write_results(tmp_path / "r1", bundle, rows, part="rows")
    second = write_results(tmp_path / "r2", bundle, timing, part="timing", when=2.0)
    take = importer(bench, tmp_path, bundle).take
    view, _ = take([first], [])
    assert (bench.job.state, view.exit_code) == (JobState.AWAITING_GPU, 3)
    assert "geomean" in (bench.job.summary or "")
    take([second], [])
    assert bench.job.state is JobState.ACCEPTED


def test_results_of_another_kind_of_machine_do_not_make_up_what_is_missing(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    whole = builders.honest()
    timing = [record for record in whole if type(record).__name__ in ("TimedCall", "ConfigFact")]
    rows = [record for record in whole if record not in timing]
    first = write_results(tmp_path / "r1", bundle, rows, part="rows")
    other = replace(MACHINE, gpu="NVIDIA L4")
    second = write_results(tmp_path / "r2", bundle, timing, part="timing", machine=other)
    view, _ = importer(bench, tmp_path, bundle).take([first, second], [])
    assert len(view.subjects) == 2
    assert bench.job.state is JobState.AWAITING_GPU


def test_importing_the_same_results_again_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    results = write_results(tmp_path / "r", bundle, builders.honest())
    take = importer(bench, tmp_path, bundle).take
    take([results], [])
    before = bench.job
    view, _ = take([results], [])
    assert bench.job == before
    assert view.exit_code == 0


def test_measurements_of_another_patch_end_the_job_as_an_attack(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench, patch_sha256="0" * 64)
    importer(bench, tmp_path, bundle).take([write_results(tmp_path / "r", bundle, builders.honest())], [])
    assert bench.job.state is JobState.FAILED
    assert "another patch" in (bench.job.summary or "")


def test_results_of_a_bundle_that_this_farm_did_not_write_are_refused(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    results = write_results(tmp_path / "r", bundle, builders.honest())
    with pytest.raises(BundleRefused, match="did not write"):
        importer(bench, tmp_path).take([results], [])
    assert bench.job.state is JobState.AWAITING_GPU


def test_a_changed_record_is_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    results = write_results(tmp_path / "r", bundle, builders.honest())
    data = bytearray((results / "rows.jsonl.gz").read_bytes())
    data[-9] ^= 1
    (results / "rows.jsonl.gz").write_bytes(bytes(data))
    with pytest.raises(BundleRefused, match=r"rows.jsonl.gz was changed"):
        importer(bench, tmp_path, bundle).take([results], [])
    assert bench.job.state is JobState.AWAITING_GPU


def test_a_worker_judges_results_that_were_given_to_a_waiting_job(bench: Bench, tmp_path: Path) -> None:
    bundle = bundle_of(bench)
    results = write_results(tmp_path / "r", bundle, builders.honest())
    from workers.measuring import MEASUREMENTS, keep_run, with_run

    digest = with_run(bench.store, {}, keep_run(bench.store, bundle, results))
    assert bench.ledger.supply(bench.job, {MEASUREMENTS: digest})
    assert bench.go(JobState.ACCEPTED).commit
    assert not bench.ledger.supply(bench.job, {MEASUREMENTS: digest})

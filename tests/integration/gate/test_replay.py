"""A bundle is measured, and measured again: the replay agrees; that of a broken candidate does not."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from containers.toolchain import Toolchain
from drivers.replaying import Run, replay
from farm.bundle import MANIFEST, Bundle
from farm.errors import BundleRefused, FarmError, UsageError
from farm.gates import GateName, Ruling
from farm.measured.model import Measured
from farm.results import read_results
from farm.rulings import case_of
from tests import cpugym, gate_bundle

pytestmark = pytest.mark.toolchain
ROWS = ("--only", "rows", "--part-limit-s", "300")


@pytest.fixture
def run(toolchain: Toolchain) -> Run:
    def runner(bundle: Path, results: Path, words: Sequence[str]) -> int:
        command = [str(toolchain.python), str(bundle / "run"), "-o", str(results), *words]
        return subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode

    return runner


def measured(bundle: Bundle, results: Path) -> Measured:
    case = case_of(bundle, [read_results(results)], bundle.subjects[0].id)
    assert case is not None
    return case.measured


def test_a_replay_agrees_with_an_honest_evidence_and_names_what_a_forged_one_claims(
    run: Run, tmp_path: Path
) -> None:
    bundle = gate_bundle.write(tmp_path / "b", "relu", at=tmp_path / "made")
    assert run(tmp_path / "b", tmp_path / "r", ROWS) == 0
    evidence = measured(bundle, tmp_path / "r")
    view = replay(tmp_path / "b", evidence, tmp_path / "again", run=run, words=ROWS)
    assert (view.agrees, view.differences, view.gpu) == (True, (), "no GPU")
    assert next(gate for gate in view.gates if gate.gate is GateName.EXECUTED).ruling is Ruling.PASS
    timed = replace(evidence.gates[2], ruling=Ruling.PASS)
    forged = replace(evidence, gates=(*evidence.gates[:2], timed), low=1.0, ratio=1.0, high=1.0)
    view = replay(tmp_path / "b", forged, tmp_path / "again", run=run, words=ROWS)
    assert not view.agrees
    assert view.differences[0].startswith("geomean: pass in the evidence, now infra")


def test_a_bundle_of_another_patch_is_refused_before_it_is_run(run: Run, tmp_path: Path) -> None:
    bundle = gate_bundle.write(tmp_path / "b", "relu", at=tmp_path / "made")

    def edit(tree: Path) -> None:
        cpugym.replace(tree / cpugym.KERNELS / "relu.c", "0.0f", "0.5f")

    gate_bundle.write(tmp_path / "other", "relu", at=tmp_path / "made-other", edit=edit)
    assert run(tmp_path / "b", tmp_path / "r", ("--only", "source", "--part-limit-s", "300")) == 0
    evidence = measured(bundle, tmp_path / "r")
    with pytest.raises(BundleRefused, match="the bundle holds relu"):
        replay(tmp_path / "other", evidence, tmp_path / "again", run=run)
    assert not (tmp_path / "again").exists()


@pytest.mark.skipif(any(Path("/dev").glob("nvidia[0-9]*")), reason="there is a GPU here")
def test_without_a_gpu_it_is_refused_and_says_what_can_be_done(run: Run, tmp_path: Path) -> None:
    bundle = gate_bundle.write(tmp_path / "b", "relu", at=tmp_path / "made")
    assert run(tmp_path / "b", tmp_path / "r", ("--only", "source", "--part-limit-s", "300")) == 0
    evidence = measured(bundle, tmp_path / "r")
    manifest = tmp_path / "b" / MANIFEST
    manifest.write_bytes(replace(bundle, gpu="sm_90").to_bytes())
    with pytest.raises(UsageError, match="needs a GPU"):
        replay(tmp_path / "b", evidence, tmp_path / "again", run=run)


def test_a_runner_that_cannot_run_is_no_replay(tmp_path: Path, run: Run) -> None:
    bundle = gate_bundle.write(tmp_path / "b", "relu", at=tmp_path / "made")
    assert run(tmp_path / "b", tmp_path / "r", ("--only", "source", "--part-limit-s", "300")) == 0
    evidence = measured(bundle, tmp_path / "r")
    with pytest.raises(FarmError, match="could not be run"):
        replay(tmp_path / "b", evidence, tmp_path / "again", run=lambda *_: 1)

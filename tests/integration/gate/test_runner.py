"""A bundle is run on a CPU, killed, taken up again and ruled on: everything but CUDA is the real thing."""

import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from containers.toolchain import Toolchain
from drivers.importing import Importer, KnownBundles
from farm.bundle import Bundle
from farm.gates import GateName, Ruling
from farm.measured.records import Outcome, Phase, RowRun
from farm.results import RESULTS, Ended, read_results
from tests import gate_bundle

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bundle]:
    place = tmp_path_factory.mktemp("bundle")
    return place / "b", gate_bundle.write(place / "b", "relu", at=place / "made")


def command(toolchain: Toolchain, bundle: Path, out: Path, *words: str) -> list[str]:
    return [str(toolchain.python), str(bundle / "run"), "-o", str(out), *words]


def _nothing() -> NoReturn:
    raise AssertionError("no job of a farm is concerned")


def test_a_killed_run_is_taken_up_and_its_records_are_ruled_on(
    written: tuple[Path, Bundle], toolchain: Toolchain, tmp_path: Path
) -> None:
    folder, _ = written
    words = command(
        toolchain, folder, tmp_path / "r", "--only", "rows", "--part-limit-s", "300", "--protocol", "best-of-4"
    )
    first = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    for line in first.stdout:
        if "source: done" in line:
            break
    first.kill()
    first.wait()
    first.stdout.close()
    kept = read_results(tmp_path / "r").results.parts
    assert [(run.part, run.ended) for run in kept] == [("source", Ended.DONE)]

    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "judge.relu source: there already" in again.stdout
    assert "relu geomean: gate not measured over 0 configs; best of 4 not measured" in again.stdout
    found = read_results(tmp_path / "r")
    assert found.results.parts[0] == kept[0]
    stub = [r for r in found.parts["judge.relu", "stub"] if isinstance(r, RowRun)]
    assert {(row.phase, row.outcome) for row in stub} == {(Phase.STUB, Outcome.FAILED)}
    target = [r for r in found.parts["judge.relu", "target"] if isinstance(r, RowRun)]
    assert len(target) == len(stub) == 4
    assert all(row.outcome is Outcome.PASSED and row.calls for row in target)

    bundles = KnownBundles(tmp_path / "known")
    importer = Importer(known=bundles, ledger=_nothing, store=_nothing, advance=_nothing, pause=lambda _: None)
    view, measured = importer.take([tmp_path / "r"], [folder])
    gates = {gate.gate: gate for gate in view.subjects[0].gates}
    assert (measured[0].rows_expected, measured[0].rows_collected) == (4, 4)
    assert gates[GateName.EXECUTED].ruling is Ruling.PASS
    assert gates[GateName.GEOMEAN].ruling is Ruling.INFRA  # nothing was timed
    assert not view.subjects[0].passed
    assert view.exit_code == 3


def test_no_time_is_said_and_nothing_passes(
    written: tuple[Path, Bundle], toolchain: Toolchain, tmp_path: Path
) -> None:
    packed = tmp_path / "r.tar.xz"
    words = command(toolchain, written[0], tmp_path / "r", "--time-limit-s", "1", "--pack", str(packed))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no time was left" in done.stdout
    parts = read_results(tmp_path / "r").results.parts
    assert {run.ended for run in parts} == {Ended.NOT_RUN}

    bundles = KnownBundles(tmp_path / "known")
    importer = Importer(known=bundles, ledger=_nothing, store=_nothing, advance=_nothing, pause=lambda _: None)
    taken = [importer.take([results], [written[0]]) for results in (tmp_path / "r", packed)]
    assert taken[0] == taken[1]
    assert (taken[1][0].subjects, taken[1][0].exit_code) == ((), 3)


def test_a_machine_without_torch_is_told_all_that_it_lacks(written: tuple[Path, Bundle], tmp_path: Path) -> None:
    words = [sys.executable, "-I", "-S", str(written[0] / "run"), "-o", str(tmp_path / "r")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pytest is not installed" in done.stderr
    assert not (tmp_path / "r" / RESULTS).exists()


def test_an_unknown_subject_is_named_with_those_that_there_are(
    written: tuple[Path, Bundle], toolchain: Toolchain, tmp_path: Path
) -> None:
    words = command(toolchain, written[0], tmp_path / "r", "--subjects", "relu,nosuch")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, "nosuch" in done.stderr, "judge.relu" in done.stderr) == (2, True, True)

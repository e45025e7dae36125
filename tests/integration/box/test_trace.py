"""The trace program on a repository of one kernel, with the real toolchain and no GPU."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from containers.toolchain import Toolchain
from farm.analysis import CandidateRow, KernelSource, Row, RowStatus, Signature
from farm.codec import decode
from farm.recipes.cutile_rs.launches import first_divergence, quantities

pytestmark = pytest.mark.toolchain
ROOT = Path(__file__).parents[3]
TEST = "tests/ops/test_double.py"


class Reference:
    """reference.json of a trace, decoded."""

    def __init__(self, out: Path, printed: str) -> None:
        document = json.loads((out / "reference.json").read_text())
        self.out = out
        self.printed = printed
        self.rows = {row.node.split("::")[-1]: row for row in (decode(Row, r) for r in document["rows"])}
        self.kernels = [decode(KernelSource, k) for k in document["kernels"]]
        self.signatures = {s.id: s for s in (decode(Signature, s) for s in document["signatures"])}
        self.versions = document["versions"]


def run(toolchain: Toolchain, repo: Path, out: Path, **request: Any) -> subprocess.CompletedProcess[str]:
    out.mkdir(exist_ok=True)
    wanted = {
        "repo": str(repo), "tests": [TEST], "backend": "cutile", "mode": "reference", "gpu": "sm_90",
        "out": str(out), "toolchain": str(toolchain.root), "library": None,
    } | request  # fmt: skip
    (out / "request.json").write_text(json.dumps(wanted))
    return subprocess.run(
        [toolchain.python, "-m", "containers.box.trace", out / "request.json"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("repo") / "traceable"
    shutil.copytree(ROOT / "tests/data/traceable", copy)
    return copy


@pytest.fixture(scope="module")
def reference(toolchain: Toolchain, repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    out = tmp_path_factory.mktemp("reference")
    done = run(toolchain, repo, out)
    assert done.returncode == 0, done.stderr
    return Reference(out, done.stdout)


@pytest.fixture(scope="module")
def candidate(
    toolchain: Toolchain, repo: Path, reference: Reference, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, CandidateRow]:
    """Rows of the backend that loads the f16 specialisation for everything."""
    signature = reference.signatures[launches(reference, "test_double[cutile-4096-dtype0]")[0].signature]
    text = (reference.out / signature.ir).read_text()
    entry = re.search(r"entry @(\w+)", text)
    assert entry is not None
    kernel = {"bytecode": str(reference.out / signature.bytecode), "entry": entry.group(1)}
    (repo / "double.json").write_text(json.dumps(kernel))
    out = tmp_path_factory.mktemp("candidate")
    done = run(toolchain, repo, out, backend="fake-rs", mode="candidate")
    assert done.returncode == 0, done.stderr
    rows = [decode(CandidateRow, row) for row in json.loads((out / "candidate.json").read_text())]
    for row in rows:
        for launch in row.launches:
            assert (out / launch.ir).read_text().startswith("entry @")
            assert (out / launch.ir).with_suffix(".tileirbc").read_bytes() == Path(kernel["bytecode"]).read_bytes()
    return {row.node.split("::")[-1]: row for row in rows}


def launches(reference: Reference, node: str) -> Sequence[Any]:
    row = reference.rows[node]
    assert row.status is RowStatus.TRACED, row.reason
    return row.launches


def test_the_rows_of_the_backend_alone_are_collected_and_performance_cases_are_none(
    reference: Reference,
) -> None:
    assert len(reference.rows) == 12
    assert all("[cutile-" in node for node in reference.rows)
    assert "rows collected 12, traced 6, skipped 2, failed 4" in reference.printed


def test_a_launch_has_its_grid_shapes_strides_and_constants(reference: Reference) -> None:
    (launch,) = launches(reference, "test_double[cutile-1000-dtype1]")
    assert launch.grid == (8, 1, 1)
    x, y, factor, tile = launch.args
    assert (x.name, x.dtype, x.shape, x.strides) == ("x", "f32", (1000,), (1,))
    assert (factor.dtype, factor.value, tile.value) == ("f32", 2.0, 128)
    assert x.address % 512 == 256  # the test slices 64 elements of 4 bytes off
    assert y.address % 512 == 0


def test_facts_are_those_of_a_real_launch(reference: Reference) -> None:
    aligned = reference.signatures[launches(reference, "test_double[cutile-4096-dtype0]")[0].signature]
    odd = reference.signatures[launches(reference, "test_double[cutile-1000-dtype1]")[0].signature]
    assert "assume div_by<16>, %arg1 : tile<i32>" in (reference.out / aligned.ir).read_text()
    assert "assume div_by<16>, %arg1 : tile<i32>" not in (reference.out / odd.ir).read_text()
    assert "assume div_by<16>, %arg0 : tile<ptr<f32>>" in (reference.out / odd.ir).read_text()


def test_the_flattened_arguments_are_the_entrys_parameters(reference: Reference) -> None:
    for signature in reference.signatures.values():
        text = (reference.out / signature.ir).read_text()
        assert len(quantities(signature.args)) == len(re.findall(r"%arg\d+: tile<", text.split("{")[0]))


def test_a_config_that_does_not_compile_loses_to_the_next(reference: Reference) -> None:
    (launch,) = launches(reference, "test_tuned[cutile-4096-dtype0]")
    assert launch.args[-1].value == 64  # 96 comes first and is no power of two
    assert "does not compile" in (reference.out / "refused.json").read_text()


def test_every_config_of_a_tuner_is_exported_with_its_hints(reference: Reference) -> None:
    tuned = [s for s in reference.signatures.values() if s.hints["occupancy"] is not None]
    assert {s.hints["occupancy"] for s in tuned} == {1, 2, 4}
    assert {s.tuned for s in tuned if s.hints["occupancy"] == 1} == {False}
    assert {s.tuned for s in tuned if s.hints["occupancy"] != 1} == {True}


def test_the_way_backward_is_traced_and_told_apart(reference: Reference) -> None:
    made = launches(reference, "test_grad[cutile-4096-dtype0]")
    assert [launch.backward for launch in made] == [False, True]


def test_host_code_that_reads_values_fails_with_its_place(reference: Reference) -> None:
    row = reference.rows["test_peek[cutile-4096-dtype0]"]
    assert row.status is RowStatus.FAILED
    assert row.reason is not None
    assert "reads tensor values" in row.reason
    assert "cutile_ops.py:" in row.reason


def test_a_shape_that_differs_is_no_comparison_of_values(reference: Reference) -> None:
    row = reference.rows["test_wrong_shape[cutile-4096-dtype0]"]
    assert row.status is RowStatus.FAILED
    assert "shapes differ" in str(row.reason)


def test_a_skip_keeps_its_reason(reference: Reference) -> None:
    row = reference.rows["test_skipped[cutile-4096-dtype0]"]
    assert (row.status, row.reason) == (RowStatus.SKIPPED, "cutile does not do this")


def test_the_kernel_is_named_with_its_place(reference: Reference) -> None:
    (kernel,) = reference.kernels
    assert kernel.name == "mini.cutile_ops.double_kernel"
    assert kernel.file == "src/mini/cutile_ops.py"
    source = (ROOT / "tests/data/traceable" / kernel.file).read_text().splitlines()
    assert source[kernel.line - 1].startswith("def double_kernel(")


def test_nothing_is_written_into_the_repo(reference: Reference, repo: Path) -> None:
    assert not list(repo.rglob("__pycache__"))
    assert not list(repo.rglob(".pytest_cache"))


def test_the_candidates_launch_is_the_references(reference: Reference, candidate: dict[str, CandidateRow]) -> None:
    mine, theirs = (
        reference.rows["test_double[cutile-4096-dtype0]"],
        candidate["test_double[fake-rs-4096-dtype0]"],
    )
    assert mine.key == theirs.key
    parameters = {(mine.launches[0].signature, theirs.launches[0].sha256): range(7)}
    assert first_divergence(mine, theirs, parameters) is None


def test_a_wrong_dtype_dispatch_is_found(reference: Reference, candidate: dict[str, CandidateRow]) -> None:
    right = reference.rows["test_double[cutile-4096-dtype0]"].launches[0].signature
    mine, theirs = (
        reference.rows["test_double[cutile-1000-dtype1]"],
        candidate["test_double[fake-rs-1000-dtype1]"],
    )
    found = first_divergence(mine, theirs, {(right, theirs.launches[0].sha256): range(7)})
    assert found is not None
    assert f"was chosen for signature {right}" in found


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("test_peek[fake-rs-4096-dtype0]", "ended without a launch"),
        (
            "test_tuned[fake-rs-4096-dtype0]",
            "launched the source backend's kernel mini.cutile_ops.double_kernel",
        ),
        ("test_grad[fake-rs-4096-dtype0]", "the row killed the process: ended by SIGABRT"),
        ("test_grad[fake-rs-1000-dtype1]", "does not implement cuTexRefCreate"),
        ("test_wrong_shape[fake-rs-4096-dtype0]", "shapes differ"),
    ],
)
def test_a_candidate_that_does_not_do_its_work_has_failed_rows(
    candidate: dict[str, CandidateRow], node: str, reason: str
) -> None:
    assert candidate[node].status is RowStatus.FAILED
    assert reason in str(candidate[node].reason)


def test_the_other_rows_survive_a_row_that_kills_the_process(candidate: dict[str, CandidateRow]) -> None:
    assert candidate["test_double[fake-rs-4096-dtype0]"].status is RowStatus.TRACED
    assert candidate["test_skipped[fake-rs-1000-dtype1]"].status is RowStatus.SKIPPED


def test_a_test_file_that_cannot_be_imported_ends_with_1(toolchain: Toolchain, repo: Path, tmp_path: Path) -> None:
    done = run(toolchain, repo, tmp_path / "out", tests=["tests/ops/test_none.py"])
    assert done.returncode == 1
    assert "nothing was collected" in done.stdout
    assert not (tmp_path / "out/reference.json").exists()


def test_a_malformed_request_ends_with_2(toolchain: Toolchain, repo: Path, tmp_path: Path) -> None:
    done = run(toolchain, repo, tmp_path / "out", gpus=3)
    assert done.returncode == 2
    assert "unknown field 'gpus'" in done.stderr

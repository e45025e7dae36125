"""One command converts an op, proves it without a GPU, and lands it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from containers.box.io import LocalBoxIO
from containers.engine.docker_engine import DockerEngine
from containers.toolchain import Toolchain
from farm import crate
from farm.codec import decode
from farm.gates import Certificate
from farm.recipes.cutile_rs.bare import bare
from farm.recipes.cutile_rs.inventory import inventory
from farm.tree import Entry, Mode, write_tree
from tests.acceptance.conftest import CRATE, SIX, Landed
from tests.unit.recipes.cutile_rs.builders import layout
from workers.gitrepo import Git, read_commit

pytestmark = [pytest.mark.docker, pytest.mark.redis, pytest.mark.toolchain]


def _tree(landed: Landed, tmp_path: Path, revision: str) -> dict[str, Entry]:
    at = Git(tmp_path / "git.config", {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    commit = at.must(landed.repo, "rev-parse", revision).decode().strip()
    return dict(read_commit(at, landed.repo, commit))


def _git(landed: Landed, *args: str) -> str:
    command = ["git", "-c", "safe.directory=*", "-C", str(landed.repo), *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _artifact(landed: Landed, digest: str) -> dict[str, Any]:
    return dict(json.loads((landed.farm.state / "artifacts" / digest[:2] / digest).read_text()))


def test_the_branch_holds_the_bare_base_plus_the_six_files(landed: Landed, tmp_path: Path) -> None:
    job, branch = landed.job, landed.job["branch"]
    assert (landed.run["exit_code"], job["state"]) == (0, "accepted")
    assert branch == "farm-certified/cutile-rs/relu"
    assert _git(landed, "rev-parse", branch) == job["commit"]
    assert _git(landed, "rev-parse", f"{branch}^") == landed.run["base"]
    base, after = _tree(landed, tmp_path, "main"), _tree(landed, tmp_path, branch)
    op = next(op for op in inventory(base, layout()) if op.name == "relu")
    start = bare(base, layout(), op).tree
    assert {path for path in after.keys() | start.keys() if after.get(path) != start.get(path)} == SIX
    assert {after[path].mode for path in SIX} == {Mode.FILE}
    assert next(op for op in inventory(after, layout()) if op.name == "relu").landed
    rust = [after[path].data for path in SIX if path.endswith(("kernel.rs", "ffi.rs"))]
    assert [data.splitlines()[0] for data in rust] == [b"// SPDX-License-Identifier: MIT"] * 2


def test_the_commit_says_what_it_rests_on(landed: Landed) -> None:
    lines = _git(landed, "log", "-1", "--format=%(trailers:only,unfold)", landed.job["branch"]).splitlines()
    trailers = dict(line.split(": ", 1) for line in lines)
    assert trailers["Farm-Correctness"].startswith("certified 8/8 rows")
    assert trailers["Farm-Executed"].startswith("certified 8 launches")
    assert trailers["Farm-Geomean"].startswith("certified Tile IR identical")
    assert trailers["Farm-Job"] == landed.job["id"]
    assert trailers["Farm-Base"] == landed.run["base"]
    kind, digest = trailers["Farm-Evidence"].split(":")
    files = _artifact(landed, digest)["files"]
    certificate = decode(Certificate, _artifact(landed, files["gates.json"])["certificate"])
    assert kind == "sha256"
    assert certificate.complete
    assert trailers["Farm-Patch"] == f"sha256:{certificate.patch_sha256}" == f"sha256:{files['patch']}"
    assert landed.farm.document("verify", landed.job["commit"])["proven"] is True


def test_the_crate_of_the_branch_builds_and_its_tests_have_rows_of_the_new_backend(
    landed: Landed, tmp_path: Path, toolchain: Toolchain
) -> None:
    work = tmp_path / "work"
    write_tree(_tree(landed, tmp_path, landed.job["branch"]), work)
    io = LocalBoxIO(workspace=work, out=tmp_path / "out", toolchain=toolchain.root, log=tmp_path / "log")
    built = crate.build(io, work / CRATE)
    assert built.library is not None, built.findings
    assert b"relu" in built.library.read_bytes()
    collected = subprocess.run(
        [
            str(toolchain.python),
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/ops/test_relu.py",
        ],
        cwd=work,
        env={"PATH": f"{toolchain.rust}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": "src:."},
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [line for line in collected.stdout.splitlines() if "test_op[" in line and "cutile-rs" in line]
    assert len(rows) == 8, collected.stdout + collected.stderr


def test_nothing_is_left_on_the_host(landed: Landed, engine: DockerEngine) -> None:
    farm = (landed.farm.state / "farm-id").read_text()
    assert engine.list({"farm": farm}) == ()
    assert list((landed.farm.state / "jobs").glob("*")) == []
    assert Path(landed.run["report"]).is_file()

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from containers.engine.docker_engine import DockerEngine
from containers.toolchain import Toolchain
from tests.farm_command import FarmCommand

#: An idle machine needs a tenth of it, and three minutes more where the crate's dependencies are not compiled yet.
JOB_LIMIT_S = 1200
CRATE = "src/minigym/ops/cutile_rs/cutile_kernels"
SIX = {
    "src/minigym/ops/cutile_rs/__init__.py",
    f"{CRATE}/src/lib.rs",
    "src/minigym/ops/cutile_rs/relu.py",
    "src/minigym/ops/cutile_rs/relu_kernel/ffi.rs",
    "src/minigym/ops/cutile_rs/relu_kernel/kernel.rs",
    "tests/ops/test_relu.py",
}


@dataclass(frozen=True, kw_only=True)
class Landed:
    """A run of one op that was accepted."""

    run: dict[str, Any]  #: the document that `farm submit --wait` printed
    repo: Path  #: where the branch is
    farm: FarmCommand

    @property
    def job(self) -> dict[str, Any]:
        """Its only job."""
        (job,) = self.run["jobs"]
        return dict(job)


def new_farm(engine: DockerEngine) -> Iterator[FarmCommand]:
    """A farm with a state folder of its own, stopped at the end; boxes may reach into its folder."""
    folder = Path(tempfile.mkdtemp(prefix="tf-acceptance-"))
    folder.chmod(0o755)
    farm = FarmCommand(folder)
    yield farm
    farm.run("down")
    named = farm.state / "farm-id"
    for box in engine.list({"farm": named.read_text()}) if named.exists() else ():
        engine.remove(box.name, grace_s=0)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def farm(engine: DockerEngine, toolchain: Toolchain) -> Iterator[FarmCommand]:
    yield from new_farm(engine)


@pytest.fixture(scope="session")
def landed(engine: DockerEngine, toolchain: Toolchain) -> Iterator[Landed]:
    """relu of the built-in repo, landed by one `farm submit`."""
    for farm in new_farm(engine):
        what = ("submit", "--ops", "relu", "--repo", "builtin:minigym", "--accept", "certified", "--wait")
        run = farm.document(*what, limit_s=JOB_LIMIT_S)
        yield Landed(run=run, repo=farm.state / "builtin" / "minigym.git", farm=farm)

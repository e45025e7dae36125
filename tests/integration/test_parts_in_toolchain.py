"""What runs in the toolchain's Python is tested there."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from containers.toolchain import Toolchain

ROOT = Path(__file__).parents[2]


def passes_its_tests(toolchain: Toolchain, marker: str) -> None:
    """Run tests/in_toolchain; hypothesis comes from beside the farm, torch and pytest from the toolchain."""
    paths = os.pathsep.join((str(ROOT), sysconfig.get_paths()["purelib"]))
    done = subprocess.run(
        (
            *(toolchain.python, "-m", "pytest", "tests/in_toolchain", "-q", "-m", marker),
            *("-p", "no:cacheprovider", "-p", "no:xdist"),
        ),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


@pytest.mark.toolchain
def test_the_parts_that_need_torch_pass_their_tests(toolchain: Toolchain) -> None:
    passes_its_tests(toolchain, "not long")


@pytest.mark.toolchain
@pytest.mark.long
def test_the_parts_that_need_torch_pass_their_long_tests(toolchain: Toolchain) -> None:
    passes_its_tests(toolchain, "long")

"""Scenarios through a real farm, as `farm selftest scenarios` plays them; the slow ones in `make test-long`."""

import json
import subprocess
import sys

import pytest

from containers.engine.docker_engine import DockerEngine
from containers.toolchain import Toolchain
from drivers.scenarios.play import corpus
from farm.codec import decode
from farm.views import ScenariosView

pytestmark = [pytest.mark.docker, pytest.mark.redis, pytest.mark.toolchain]

PLAYS = [pytest.param(play.name, id=play.name, marks=() if play.quick else pytest.mark.long) for play in corpus()]


@pytest.mark.parametrize("name", PLAYS)
def test_a_scenario_comes_to_what_is_expected(name: str, toolchain: Toolchain, engine: DockerEngine) -> None:
    command = (sys.executable, "-P", "-c", "from drivers.cli import main; main()")
    done = subprocess.run(
        (*command, "selftest", "scenarios", "--only", name, "--json"), capture_output=True, text=True, check=False
    )
    view = decode(ScenariosView, json.loads(done.stdout))
    assert view.scenarios[0].problems == ()
    assert done.returncode == 0
    assert (view.as_expected, view.total) == (1, 1)

"""The real `farm` command in processes of its own: what needs no engine, and refusals that leave nothing."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.engine.probe import probe
from tests.farm_command import ROOT, FarmCommand

GIB = 2**30


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[FarmCommand]:
    made = FarmCommand(tmp_path)
    yield made
    if (made.state / "run" / "service.json").exists():
        made.run("down")


def test_ops_of_the_builtin_repo_are_listed_without_an_engine(farm: FarmCommand) -> None:
    done = farm.run("ops", "--json")
    assert done.returncode == 0, done.stderr
    ops = json.loads(done.stdout)["ops"]
    assert [(op["name"], op["landed"]) for op in ops] == [
        ("add_bias", False),
        ("relu", False),
        ("scale", False),
        ("silu_and_mul", True),
    ]


def test_an_unknown_op_is_refused_with_close_names(farm: FarmCommand) -> None:
    assert "did you mean relu?" in farm.refused("submit", "--ops", "rleu", code=2)


def test_a_missing_repo_or_revision_is_refused(farm: FarmCommand, tmp_path: Path) -> None:
    assert "check --repo" in farm.refused("submit", "--ops", "relu", "--repo", "/nowhere", code=2)
    assert "check --base" in farm.refused("submit", "--ops", "relu", "--base", "gone", code=2)
    (tmp_path / "plain").mkdir()
    assert "git" in farm.refused("submit", "--ops", "relu", "--repo", str(tmp_path / "plain"), code=2)


def test_what_is_no_commit_op_or_bundle_is_refused_and_leaves_nothing(farm: FarmCommand, tmp_path: Path) -> None:
    assert "no revision 'gone'" in farm.refused("verify", "gone", code=2)
    assert "`farm ops`" in farm.refused("judge", "gone", "-o", str(tmp_path / "judged"), code=2)
    assert "`farm bundle` writes one" in farm.refused("accept", str(tmp_path), code=2)
    assert not (tmp_path / "judged").exists()


def test_a_state_folder_that_cannot_be_one_is_named(farm: FarmCommand, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        message = farm.refused("submit", "--ops", "relu", code=2, TILEFARM_STATE=str(place))
        assert f"the state folder {place} cannot be used" in message
        assert "TILEFARM_STATE" in message


def test_a_repo_without_the_recipes_layout_is_refused(farm: FarmCommand, tmp_path: Path) -> None:
    repo = tmp_path / "other"
    repo.mkdir()
    (repo / "a.py").write_text("x = 1\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "one"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(repo), *who, *command], check=True)
    assert "ops/cutile" in farm.refused("submit", "--ops", "all", "--repo", str(repo), code=2)


def test_without_an_engine_the_refusal_says_what_to_install(farm: FarmCommand) -> None:
    message = farm.refused("submit", "--ops", "relu", code=1, DOCKER_HOST="unix:///nowhere/docker.sock")
    assert "Docker" in message


@pytest.mark.docker
def test_without_a_toolchain_the_refusal_says_how_to_install_it(farm: FarmCommand, tmp_path: Path) -> None:
    if not probe(os.environ).answers:
        pytest.skip("no container engine")
    nowhere = str(tmp_path / "none")
    assert "farm toolchain install" in farm.refused("submit", "--ops", "relu", code=1, TILEFARM_TOOLCHAIN=nowhere)


def test_without_space_or_redis_nothing_is_stored(farm: FarmCommand) -> None:
    submit = ("submit", "--ops", "relu")
    full = farm.refused(*submit, code=1, TILEFARM_LIMITS__MIN_FREE_BYTES=str(2**60))
    assert "free space" in full
    gone = farm.refused(*submit, code=1, TILEFARM_BROKER__URL="redis://127.0.0.1:1/0")
    assert "Redis does not answer" in gone


def test_a_settings_file_with_mistakes_lists_all_of_them(farm: FarmCommand) -> None:
    message = farm.refused("status", code=2, TILEFARM_WORKER__LEASE_S="soon", TILEFARM_NONSENSE="1")
    assert "lease_s" in message
    assert "nonsense" in message


def test_doctor_says_what_an_absent_engine_needs(farm: FarmCommand) -> None:
    done = farm.run("doctor", "--json", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 1
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["engine"]["level"] == "error"
    assert "Docker" in checks["engine"]["next_step"]
    assert checks["ledger"]["level"] == "ok"


def test_an_unknown_recipe_is_refused_with_those_that_there_are(farm: FarmCommand) -> None:
    assert "there is cutile-rs" in farm.refused("submit", "--ops", "relu", "--recipe", "gone", code=2)


def test_a_broken_recipe_stores_nothing_and_lists_its_mistakes(farm: FarmCommand, tmp_path: Path) -> None:
    """The whole farm as it is installed, with a recipe that somebody edited."""
    unneeded = shutil.ignore_patterns("__pycache__", "native")
    for name in ("farm", "workers", "containers", "drivers", "config", "tests/data/minigym"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name, ignore=unneeded)
    recipe = tmp_path / "copy" / "config" / "recipes" / "cutile-rs" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("stage_limit_s = 900", 'stage_limit_s = "long"\nspeed = 3'))
    message = farm.refused("submit", "--ops", "relu", code=2, PYTHONPATH=str(tmp_path / "copy"))
    assert "stage_limit_s" in message
    assert "speed" in message
    assert "recipe.toml" in message


def test_a_place_for_branches_that_does_not_exist_is_refused_before_anything_is_stored(farm: FarmCommand) -> None:
    if not probe(os.environ).answers:
        pytest.skip("no container engine")
    message = farm.refused("submit", "--ops", "relu", "--push-to", "/nowhere", code=2)
    assert "/nowhere" in message
    assert "check --push-to" in message


def test_an_engine_that_went_away_and_a_redis_that_went_away_name_what_to_start(farm: FarmCommand) -> None:
    dead = farm.refused("one-shot", "relu", code=1, DOCKER_HOST="tcp://127.0.0.1:1")
    assert "Docker" in dead or "DOCKER_HOST" in dead
    gone = farm.refused("submit", "--ops", "relu", "--wait", code=1, TILEFARM_BROKER__URL="redis://127.0.0.1:1/0")
    assert "farm up" in gone or "broker" in gone


def test_a_state_folder_that_cannot_be_used_is_one_clear_error(farm: FarmCommand, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = farm.run("status", "--json", TILEFARM_STATE=str(tmp_path / "file" / "state"))
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["kind"] == "error"

"""The real `farm` command in processes of its own: what needs no engine, and refusals that leave nothing."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from containers.engine.probe import probe

ROOT = Path(__file__).parents[3]
GIB = 2**30


class FarmCommand:
    """Runs `farm` with a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("TILEFARM_")},
            "TILEFARM_STATE": str(self.state),
            "TILEFARM_LIMITS__MIN_FREE_BYTES": "1",
            "PYTHONPATH": str(ROOT),
        }

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        """One command."""
        program = "from drivers.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, *args],
            env={**self._env, **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def refused(self, *args: str, code: int, **env: str) -> str:
        """The message of a command that has to end with `code`, without a traceback and without a run stored."""
        done = self.run(*args, "--json", **env)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        assert (document["kind"], document["exit_code"]) == ("error", code)
        assert self.runs() == 0
        assert not (self.state / "run" / "service.json").exists()
        return str(document["message"])

    def runs(self) -> int:
        """Runs in the ledger; a ledger that was never made has none."""
        ledger = self.state / "ledger.db"
        if not ledger.exists():
            return 0
        with sqlite3.connect(ledger) as connection:
            tables = connection.execute("select name from sqlite_master where name = 'runs'").fetchall()
            return int(connection.execute("select count(*) from runs").fetchone()[0]) if tables else 0


@pytest.fixture
def farm(tmp_path: Path) -> FarmCommand:
    return FarmCommand(tmp_path)


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

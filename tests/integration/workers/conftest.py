import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.workers.farm_under_test import Farm
from workers.gitrepo import Git
from workers.repositories import Repositories

GitCommand = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> GitCommand:
    """git as any user runs it, for looking at what ours has done."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {
            f"GIT_{who}_NAME": "t",
            f"GIT_{who}_EMAIL": "t@localhost",
            f"GIT_{who}_DATE": "1700000000 +0000",
        }

    def run(folder: Path, *args: str, data: bytes = b"") -> str:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(folder), *args],
            input=data,
            env=env,
            check=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    return run


@pytest.fixture
def at(tmp_path: Path) -> Git:
    return Git(tmp_path / "state" / "gitconfig", os.environ)


@pytest.fixture
def source(tmp_path: Path, git: GitCommand) -> Path:
    """A target repo as a user has it: with a working tree, a tag, a second branch, awkward files."""
    folder = tmp_path / "source"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    (folder / "a.py").write_bytes(b"x = 1\r\n")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / ".gitattributes").write_bytes(b"* text=auto eol=crlf\n*.bin export-ignore\n")
    (folder / 'uml\u00e4ut "q" \t\n').write_bytes(b"n")
    (folder / os.fsdecode(b"raw\xff")).write_bytes(bytes(range(256)))
    (folder / "d").mkdir()
    (folder / "d" / "l").symlink_to("../a.py")
    git(folder, "-c", "core.autocrlf=false", "add", "-A", "--", ".")
    git(folder, "commit", "-qm", "one")
    git(folder, "tag", "-a", "v1", "-m", "v1")
    git(folder, "checkout", "-qb", "side/branch")
    git(folder, "commit", "-q", "--allow-empty", "-m", "two")
    git(folder, "checkout", "-q", "trunk")
    return folder


@pytest.fixture
def gym(tmp_path: Path) -> Path:
    folder = tmp_path / "gym"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "x.pyc").write_bytes(b"junk")
    (folder / "op.py").write_bytes(b"y = 2\n")
    return folder


@pytest.fixture
def repositories(tmp_path: Path, at: Git, gym: Path) -> Repositories:
    return Repositories(tmp_path / "state", at, {"gym": gym})


@pytest.fixture
def make_farm(tmp_path: Path) -> Iterator[Callable[..., Farm]]:
    """Farms with a real Redis and a scripted spine; keywords are settings of the worker."""
    farms: list[Farm] = []

    def make(**worker: object) -> Farm:
        farm = Farm(tmp_path / f"farm{len(farms)}", **worker)
        farms.append(farm)
        farm.start_redis()
        return farm

    yield make
    for farm in farms:
        farm.close()

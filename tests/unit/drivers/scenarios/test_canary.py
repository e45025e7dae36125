"""The search for a key finds it where it is hidden from a plain look."""

import subprocess
from pathlib import Path

from drivers.scenarios.canary import CANARY, in_files, in_git

KEY = CANARY.encode()


def test_a_key_in_a_file_is_found_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "worker.log").write_bytes(b"\x00 x-api-key: " + KEY + b"\n")
    (tmp_path / "log" / "other.log").write_text("sk-ant-api03-another")
    (tmp_path / "link").symlink_to(tmp_path / "log" / "worker.log")
    assert list(in_files(tmp_path, KEY)) == ["log/worker.log"]


def test_a_key_in_a_git_object_is_found_though_it_is_compressed(tmp_path: Path) -> None:
    repo = tmp_path / "repo.git"
    subprocess.run(("git", "init", "-q", "--bare", str(repo)), check=True)
    assert list(in_git(repo, KEY)) == []
    subprocess.run(("git", f"--git-dir={repo}", "hash-object", "-w", "--stdin"), input=b"x" * 99 + KEY, check=True)
    assert list(in_files(tmp_path, KEY)) == []
    assert list(in_git(repo, KEY)) == ["an object of repo.git"]

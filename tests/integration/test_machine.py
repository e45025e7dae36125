"""What the fixtures of tests/conftest.py promise about the machine."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.redis
def test_the_redis_of_tests_is_empty_and_writes_its_file(redis_socket: Path) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(redis_socket))
        link.sendall(b"DBSIZE\r\nCONFIG GET appendonly\r\n")
        answer = b""
        while not answer.endswith(b"yes\r\n"):
            answer += link.recv(4096)
    assert answer.startswith(b":0\r\n")


@pytest.mark.parametrize(("ci", "word"), [("true", "failed"), ("", "skipped")])
def test_a_missing_toolchain_skips_at_home_and_fails_in_ci(tmp_path: Path, ci: str, word: str) -> None:
    here = Path(__file__).resolve()
    node = f"{here.parent}/containers/test_docker.py::test_the_toolchain_works_in_a_box"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TILEFARM_TOOLCHAIN": str(tmp_path / "none"), "CI": ci}
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", node),
        cwd=here.parents[2],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    # The outcome of a fixture that fails is an error.
    words = done.stdout.splitlines()[-1]
    assert (word in words) or (word == "failed" and "error" in words), done.stdout
    assert "farm toolchain install" in done.stdout

"""Commands of agents: output, exit codes, limits, and nothing left of them."""

import os
import time
from pathlib import Path

from containers.box.agent import shell


def run(command: str, tmp_path: Path, limit_s: float = 20.0) -> tuple[str, bool]:
    return shell.run(command, tmp_path, limit_s, {"PATH": os.environ["PATH"]})


def test_output_and_exit_code_come_back(tmp_path: Path) -> None:
    assert run("echo one; echo two >&2; pwd", tmp_path) == (f"one\ntwo\n{tmp_path}\n(exit 0)", False)
    assert run("exit 3", tmp_path) == ("(exit 3)", True)


def test_a_command_that_takes_too_long_is_killed_and_what_it_said_is_kept(tmp_path: Path) -> None:
    began = time.monotonic()
    text, failed = run("echo begun; sleep 60", tmp_path, 0.5)
    assert time.monotonic() - began < 10
    assert (text, failed) == ("begun\n(killed after 0 s)", True)


def test_what_moved_into_a_session_of_its_own_is_ended_too(tmp_path: Path) -> None:
    text, failed = run("setsid sleep 61 >/dev/null 2>&1 & setsid setsid sleep 61 >/dev/null 2>&1 & echo", tmp_path)
    assert (text, failed) == ("(exit 0)", False)
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _words(path) == [b"sleep", b"61"]]
    assert left == []


def test_one_that_keeps_the_output_open_from_another_session_does_not_hold_the_agent(tmp_path: Path) -> None:
    began = time.monotonic()
    text, _ = run("setsid sleep 62 & echo done", tmp_path, 1.0)
    assert time.monotonic() - began < 10
    assert "done" in text


def test_long_output_loses_its_middle(tmp_path: Path) -> None:
    text, _ = run("head -c 100000 /dev/zero | tr '\\0' x", tmp_path)
    assert "[70000 characters dropped]" in text
    assert len(text) < shell.SHOWN + 100


def _words(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")[:2]
    except OSError:
        return []

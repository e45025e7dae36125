import json
import os
import signal
import subprocess
import sys
import time

from workers import processes

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_process_is_found_again_by_its_record_until_it_ends(tmp_path):
    pid = processes.start_detached(SLEEPER, log=tmp_path / "log", cwd=tmp_path)
    processes.record(tmp_path / "pid", pid)
    found = processes.recorded(tmp_path / "pid")
    assert found is not None
    assert found.pid == pid
    assert os.getsid(pid) == pid
    processes.stop(found, grace_s=10)
    until(lambda: not processes.alive(found))
    assert processes.recorded(tmp_path / "pid") is None


def test_a_pid_that_belongs_to_another_process_now_is_not_mistaken(tmp_path):
    me = processes.identify(os.getpid())
    assert me is not None
    for change in ({"start_ticks": me.start_ticks - 1}, {"boot": "another"}):
        (tmp_path / "pid").write_text(json.dumps({**me.__dict__, **change}))
        assert processes.recorded(tmp_path / "pid") is None


def test_broken_records_count_for_nothing(tmp_path):
    assert processes.recorded(tmp_path / "none") is None
    for text in ("", "12", "{}", "[1]", '{"pid": "x"}'):
        (tmp_path / "pid").write_text(text)
        assert processes.recorded(tmp_path / "pid") is None


def test_a_process_that_ignores_the_request_is_killed_with_its_group(tmp_path):
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"child = subprocess.Popen({list(SLEEPER)!r}); print(child.pid, flush=True); time.sleep(600)"
    )
    pid = processes.start_detached((sys.executable, "-c", code), log=tmp_path / "log", cwd=tmp_path)
    until(lambda: (tmp_path / "log").read_text().endswith("\n"))
    child = processes.identify(int((tmp_path / "log").read_text()))
    processes.stop(processes.identify(pid), grace_s=0.1)
    until(lambda: processes.identify(pid) is None)
    until(lambda: not processes.alive(child))


def test_the_remains_of_a_process_are_no_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    until(lambda: processes.identify(child.pid) is None)
    assert child.wait() == 0


def test_our_module_is_run_even_where_another_one_has_its_name(tmp_path):
    (tmp_path / "farm").mkdir()
    (tmp_path / "farm" / "__init__.py").write_text("raise SystemExit('a stranger')")
    ran = subprocess.run(
        [*processes.python_module("farm.codec")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_stopped_process_lives(tmp_path):
    pid = processes.start_detached(SLEEPER, log=tmp_path / "log", cwd=tmp_path)
    identity = processes.identify(pid)
    os.kill(pid, signal.SIGSTOP)
    assert processes.alive(identity)
    processes.kill_group(identity)
    until(lambda: not processes.alive(identity))

"""What a part's processes get, and that nothing of them outlives their end."""

import subprocess
import sys
import time
from pathlib import Path

from containers.box.gate.processes import descendants, environment, isolation, kill_tree, without_network

#: Starts a child in a session of its own which starts another, prints their ids, and waits.
FAMILY = """
import subprocess, sys, time
inner = "import subprocess, sys, time; " \\
    "p = subprocess.Popen(['sleep', '600'], start_new_session=True); print(p.pid, flush=True); time.sleep(600)"
p = subprocess.Popen([sys.executable, "-c", inner], start_new_session=True)
print(p.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_whole_family_ends_though_each_has_a_session_of_its_own() -> None:
    process = subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE)
    assert process.stdout is not None
    pids = [int(process.stdout.readline()) for _ in range(2)]
    assert set(pids) <= set(descendants(process.pid))
    kill_tree(process)
    deadline = time.monotonic() + 5
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))
    assert process.returncode is not None
    process.stdout.close()


def test_a_part_gets_named_variables_alone(tmp_path: Path) -> None:
    host = {
        "PATH": "/bin",
        "PYTHONPATH": "/opt/site",
        "CUDA_HOME": "/usr/local/cuda",
        "ANTHROPIC_API_KEY": "secret",
        "CUTILE_TILEIRAS_PATH": "/opt/tileiras",
        "HOME": "/root",
        "LD_PRELOAD": "/evil.so",
    }
    given = environment(host, Path("/b/lib"), tmp_path)
    assert "secret" not in str(given)
    assert {"CUDA_HOME", "LD_PRELOAD"}.isdisjoint(given)
    assert given["PYTHONPATH"] == "/b/lib:/opt/site"
    assert (given["PATH"], given["CUTILE_TILEIRAS_PATH"]) == ("/bin", "/opt/tileiras")
    assert Path(given["HOME"]).is_relative_to(tmp_path)


def test_what_is_called_no_network_has_none() -> None:
    prefix = without_network()
    said = isolation(prefix, None)["network"]
    if not prefix:
        assert "the machine's" in said
        return
    program = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    done = subprocess.run([*prefix, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "unreachable" in done.stderr
    assert said.startswith("none")

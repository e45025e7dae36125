"""The native collector against a CUPTI of our own; the Python side reads its pipe."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from containers.box.gate import collector
from containers.box.gate.collector import Flush, Reader, State

SOURCES = Path(__file__).resolve().parents[5] / "containers" / "native" / "collector"

PRELUDE = """
import ctypes, os
from containers.box.gate import collector
fake = ctypes.CDLL(os.environ["TILEFARM_CUPTI"])
library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
def launch(name, start, end, stream=7, correlation=1):
    names.append(ctypes.c_char_p(name.encode()))
    fake.fake_launch(names[-1], ctypes.c_uint64(start), ctypes.c_uint64(end), stream, correlation)
names = []
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The collector and the CUPTI that stands for the real one."""
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("collector")
    source = shutil.copytree(SOURCES, folder / "source")
    subprocess.run(["make", "install", f"PREFIX={folder}"], cwd=source, check=True, capture_output=True)
    fake = folder / "libfake_cupti.so"
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(fake), "fake_cupti.c"]
    subprocess.run(command, cwd=source, check=True)
    return folder / "lib" / collector.LIBRARY, fake


def run(
    built: tuple[Path, Path], code: str, *tokens: int, injected: bool = True, **environment: str
) -> list[Flush]:
    """Flushes of a child that runs `code` with the collector; `injected` is the driver's part."""
    reader = Reader()
    start = "library.InitializeInjection()\ncollector.begin()\n" if injected else ""
    child = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + start + code],
        env={**os.environ, **reader.environment(built[0], cupti=built[1]), **environment},
        pass_fds=reader.inherited,
    )
    reader.started()
    flushes = [reader.until(token, 20) for token in tokens]
    assert child.wait(20) == 0
    reader.close()
    return flushes


def test_events_up_to_a_token_come_in_order_of_their_start(built: tuple[Path, Path]) -> None:
    first, second = run(
        built,
        """
launch("late_entry", 300, 450, stream=13, correlation=2)
launch("early_entry", 100, 200)
assert collector.flush(1)
launch("late_entry", 500, 501)
assert collector.flush(2)
""",
        1,
        2,
    )
    assert [(e.symbol, e.start_ns, e.end_ns, e.stream, e.correlation) for e in first.events] == [
        ("early_entry", 100, 200, 7, 1),
        ("late_entry", 300, 450, 13, 2),
    ]
    assert [e.symbol for e in second.events] == ["late_entry"]
    assert first.state is second.state is State.COMPLETE
    assert first.missing == second.missing == 0


def test_nothing_that_ran_is_complete_and_empty_and_the_canary_is_no_event(built: tuple[Path, Path]) -> None:
    (flush,) = run(built, "assert collector.flush(5)", 5)
    assert flush.state is State.COMPLETE
    assert flush.events == ()


def test_dropped_records_and_records_without_times_are_counted(built: tuple[Path, Path]) -> None:
    (flush,) = run(built, 'fake.fake_drop(3); launch("a", 0, 0); launch("b", 1, 2); collector.flush(1)', 1)
    assert flush.lost == 4
    assert [event.symbol for event in flush.events] == ["b"]


def test_a_clock_that_is_not_the_hosts_is_noticed(built: tuple[Path, Path]) -> None:
    good, cycles = run(
        built,
        """
assert collector.flush(1)
fake.fake_clock(ctypes.c_uint64(2))
assert not collector.flush(2)
""",
        1,
        2,
    )
    assert (good.state, good.missing) == (State.COMPLETE, 0)
    assert cycles.state is State.CLOCK
    assert cycles.missing > 0


def test_between_end_and_begin_nothing_is_collected_and_nothing_is_held_back(built: tuple[Path, Path]) -> None:
    before, between, after = run(
        built,
        """
launch("first_entry", 100, 200)
assert collector.end()
launch("unseen_entry", 300, 400)
assert not collector.flush(1)
launch("unseen_entry", 500, 600)
assert not collector.flush(2)
assert collector.begin()
launch("last_entry", 700, 800)
assert collector.flush(3)
""",
        1,
        2,
        3,
    )
    assert [event.symbol for event in before.events] == ["first_entry"]
    assert (between.events, between.state) == ((), State.IDLE)
    assert [event.symbol for event in after.events] == ["last_entry"]
    assert after.state is State.COMPLETE


def test_a_profiler_that_takes_the_records_is_noticed_and_begin_takes_them_back(built: tuple[Path, Path]) -> None:
    during, after = run(
        built,
        """
fake.fake_other_profiler()
launch("unseen", 1, 2)
assert not collector.flush(1)
assert collector.begin()
launch("seen", 3, 4)
assert collector.flush(2)
""",
        1,
        2,
    )
    assert during.state is State.TAKEN
    assert during.missing == 1
    assert after.state is State.COMPLETE
    assert [event.symbol for event in after.events] == ["seen"]
    assert (during.begins, after.begins) == (1, 2)


def test_an_unknown_version_of_cupti_is_refused_with_its_number(built: tuple[Path, Path]) -> None:
    (flush,) = run(built, 'launch("a", 1, 2); collector.flush(1)', 1, FAKE_CUPTI_VERSION="140000")
    assert flush.state is State.NOT_LOADED
    assert flush.missing == 1
    assert "140000" in flush.problems[0]


def test_without_a_context_nothing_is_claimed(built: tuple[Path, Path]) -> None:
    (flush,) = run(built, "fake.fake_context(0); collector.flush(1)", 1)
    assert flush.state is State.NO_CONTEXT


def test_a_child_whose_driver_did_not_load_it_is_told_from_one_that_launched_nothing(
    built: tuple[Path, Path],
) -> None:
    (flush,) = run(built, "collector.flush(1)", 1, injected=False)
    assert flush.state is State.NOT_LOADED


def test_a_child_that_ends_before_its_token_is_no_measurement(built: tuple[Path, Path]) -> None:
    (flush,) = run(built, 'launch("a", 1, 2)', 1)
    assert flush.state is State.ENDED
    assert flush.missing == 1


def test_a_missing_cupti_is_named(built: tuple[Path, Path]) -> None:
    code = 'os.environ["TILEFARM_CUPTI"] = "/nowhere.so"; library.InitializeInjection(); collector.flush(1)'
    (flush,) = run(built, code, 1, injected=False)
    assert flush.state is State.NOT_LOADED
    assert flush.problems
    assert flush.problems[0].startswith("no CUPTI library could be loaded")


def test_more_records_than_the_pipe_holds_arrive(built: tuple[Path, Path]) -> None:
    code = """
for round in range(20):
    for i in range(1000):
        launch("entry_%d_%s" % (i, "x" * 300), 1 + i, 2 + i)
    assert collector.flush(round)
"""
    flushes = run(built, code, *range(20))
    assert [len(flush.events) for flush in flushes] == [1000] * 20
    assert all(flush.state is State.COMPLETE for flush in flushes)


def test_a_grandchild_does_not_write_into_the_pipe(built: tuple[Path, Path]) -> None:
    code = """
import subprocess, sys
subprocess.run([sys.executable, "-c", '''
import ctypes, os
library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
library.InitializeInjection()
library.tilefarm_flush(ctypes.c_uint64(1))
'''], close_fds=False, check=True)
collector.flush(2)
"""
    reader_tokens = run(built, code, 2)
    assert [flush.token for flush in reader_tokens] == [2]
    assert reader_tokens[0].begins == 1


def test_a_reader_that_is_gone_does_not_stop_the_child(built: tuple[Path, Path]) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    environment = {
        collector.PIPE: f"{write}:{os.fstat(write).st_ino}",
        collector.INJECTION: str(built[0]),
        collector.CUPTI: str(built[1]),
    }
    os.close(read)
    code = PRELUDE + "library.InitializeInjection()\nprint(collector.flush(1))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        pass_fds=(write,),
        timeout=30,
        check=True,
    )
    os.close(write)
    assert done.returncode == 0

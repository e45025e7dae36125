"""Boxes in a real engine: what they can do, what they cannot, how their ends are told."""

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from containers.access import box_user, give
from containers.classify import BoxExit, classify
from containers.engine import BoxLimits, BoxSpec, BoxStatus, Mount
from containers.engine.docker_engine import DockerEngine
from containers.spec import box_env
from containers.toolchain import Toolchain

pytestmark = pytest.mark.docker


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder that a box may write; outside pytest's, which other users may not enter."""
    folder = Path(tempfile.mkdtemp(prefix="tf-work-"))
    folder.chmod(0o755)
    give(folder, box_user(os.getuid(), os.getgid()))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def spec(work: Path) -> BoxSpec:
    return BoxSpec(
        name=f"tilefarm-test-{uuid.uuid4().hex[:12]}",
        argv=("true",),
        env={"PATH": "/usr/bin:/bin", "HOME": "/tmp"},
        mounts=(Mount(source=work, target="/work", writable=True),),
        labels={"farm": "tests"},
        workdir="/work",
        limits=BoxLimits(memory_bytes=256 << 20, pids=32, tmpfs_bytes=1 << 20),
    )


Ends = Callable[..., tuple[BoxStatus, str]]


@pytest.fixture
def run(engine: DockerEngine, spec: BoxSpec) -> Iterator[Ends]:
    """Run a command in a box to its end."""

    def to_end(*argv: str, **changes: object) -> tuple[BoxStatus, str]:
        status = engine.ensure(replace(spec, argv=argv, **changes))  # type: ignore[arg-type]
        deadline = time.monotonic() + 60
        while status.running and time.monotonic() < deadline:
            time.sleep(0.02)
            status = engine.inspect(spec.name) or pytest.fail("the box is gone")
        return status, engine.logs(spec.name, tail=100)

    yield to_end
    engine.remove(spec.name, grace_s=0)


def test_a_box_is_unprivileged_and_can_write_its_own_folders_only(run: Ends, work: Path) -> None:
    status, log = run(
        "sh",
        "-c",
        "id -u; echo yes > /work/made; echo yes > /tmp/made; "
        "for f in /x /usr/x /etc/x /root/x; do echo no > $f; done; "
        "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status",
    )
    assert status.exit_code == 0, log
    assert log.splitlines()[0] == str(box_user(os.getuid(), os.getgid()).uid)
    assert (work / "made").read_text() == "yes\n"
    assert (
        log.count("Read-only file system") + log.count("Directory nonexistent") + log.count("Permission denied")
        == 4
    )
    assert "CapEff:\t0000000000000000" in log
    assert "NoNewPrivs:\t1" in log


def test_a_box_has_no_network(run: Ends) -> None:
    _, log = run("sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | wc -l")
    assert log.split() == ["lo", "1"]


def test_a_box_sees_neither_home_nor_state_nor_the_engine(run: Ends, work: Path) -> None:
    hidden = Path(tempfile.mkdtemp(prefix="tf-state-"))
    try:
        (hidden / "ledger.db").write_text("secret")
        _, log = run(
            "sh", "-c", f"cat {hidden}/ledger.db; ls {Path.home()}/.ssh /var/run/docker.sock /home /var/lib; env"
        )
    finally:
        shutil.rmtree(hidden)
    assert "secret" not in log
    assert log.count("No such file or directory") + log.count("cannot access") >= 4


def test_running_out_of_memory_is_told_apart_from_being_killed(run: Ends) -> None:
    status, log = run("sh", "-c", "x=$(yes)")
    assert classify(status, log).exit is BoxExit.OOM


def test_a_signal_of_the_program_itself_is_no_oom(run: Ends) -> None:
    status, log = run("sh", "-c", "kill -9 $$")
    assert classify(status, log).exit is BoxExit.KILLED


def test_the_limit_of_processes_holds(run: Ends) -> None:
    status, log = run("sh", "-c", "for i in $(seq 100); do sleep 5 & done; wait")
    assert classify(status, log).exit is BoxExit.PROCESSES


def test_a_full_tmp_is_no_error_of_the_program(run: Ends) -> None:
    status, log = run("sh", "-c", "exec dd if=/dev/zero of=/tmp/f bs=1M count=4")
    assert classify(status, log).exit is BoxExit.NO_SPACE


def test_what_is_compiled_in_tmp_can_be_executed(run: Ends) -> None:
    status, log = run("sh", "-c", "cp /bin/true /tmp/t && /tmp/t")
    assert status.exit_code == 0, log


def test_a_program_that_is_not_there_is_not_started(run: Ends) -> None:
    status, log = run("no-such-program")
    assert classify(status, log).exit is BoxExit.NOT_STARTED, (status, log)


def test_ensuring_twice_gives_one_box_and_an_ended_one_is_adopted(
    run: Ends, engine: DockerEngine, spec: BoxSpec
) -> None:
    first, _ = run("sh", "-c", "echo once; exit 3")
    again = engine.ensure(spec)
    assert (again.exit_code, again.started_at) == (3, first.started_at)
    assert engine.logs(spec.name, tail=10) == "once\n"


def test_removal_ends_a_box_that_ignores_the_stop_signal(engine: DockerEngine, spec: BoxSpec) -> None:
    engine.ensure(replace(spec, argv=("sh", "-c", "trap '' TERM; while :; do sleep 1; done")))
    engine.remove(spec.name, grace_s=1)
    assert engine.inspect(spec.name) is None
    engine.remove(spec.name, grace_s=1)


def test_the_output_is_kept_within_its_limit(run: Ends, spec: BoxSpec) -> None:
    limits = replace(spec.limits, log_bytes=64 << 10)
    _, log = run("sh", "-c", "seq 200000", limits=limits)
    assert log.splitlines()[-1] == "200000"


@pytest.mark.toolchain
def test_the_toolchain_works_in_a_box(run: Ends, spec: BoxSpec, toolchain: Toolchain) -> None:
    env = dict(box_env(toolchain))
    mounts = (*spec.mounts, *(Mount(source=path, target=str(path)) for path in toolchain.mount_folders()))
    status, log = run(
        "sh",
        "-c",
        "python -c 'import torch, cuda.tile, cffi, pytest; print(torch.__version__)' && cargo --version && "
        "tileiras --version | tail -1 && cc --version | head -1",
        env=env,
        mounts=mounts,
        limits=BoxLimits(),
    )
    assert status.exit_code == 0, log
    assert log.startswith(toolchain.record.versions["torch"])
    assert f"cargo {toolchain.record.versions['rustc'].rsplit('.', 1)[0]}" in log

import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from drivers import embedded
from drivers.places import places
from farm.errors import BrokerUnavailable, ConfigurationError
from farm.job import FINAL, Accept, JobState
from farm.ledger import Ledger
from farm.settings import Broker, Embedded, Gateway, Settings, Worker, inherited, with_keys
from workers import processes
from workers.app import open_queue
from workers.gateway.client import health
from workers.gateway.place import gateway_place
from workers.gateway.usable import gateway_problem

pytestmark = pytest.mark.redis


def settings(state: Path, **more) -> Settings:
    worker = Worker(
        concurrency=1, reconcile_s=0.3, lease_s=2.0, waiting_poll_s=0.5, spine="workers.scripted:build_spine"
    )
    return Settings(**{"state": state, "toolchain": state, "worker": worker, **more})


def until(condition, limit_s=60.0):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s"
        time.sleep(0.05)


def submit(of: Settings, *ops: str):
    ledger = Ledger(of.ledger_url)
    run = ledger.submit(
        recipe="scripted", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=1, ops=ops
    )
    return ledger, ledger.jobs(run=run.id)


def finish(ledger: Ledger) -> set[JobState]:
    until(lambda: all(job.state in FINAL for job in ledger.jobs()))
    found = {job.state for job in ledger.jobs()}
    ledger.close()
    return found


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    yield folder
    embedded.down(settings(folder))


def call_up(of: Settings) -> None:
    embedded.up(of)


def test_a_farm_starts_once_works_is_found_again_and_goes_down(state):
    first = embedded.up(settings(state), wait_ready=True)
    assert first.running
    assert first.ready
    assert os.getsid(first.service) == first.service
    ledger, _ = submit(settings(state), "relu")
    assert finish(ledger) == {JobState.ACCEPTED}
    second = embedded.up(settings(state), wait_ready=True)
    assert (second.redis, second.service) == (first.redis, first.service)
    assert embedded.status(settings(state)) == second
    assert embedded.down(settings(state))
    third = embedded.status(settings(state))
    assert (third.redis, third.service, third.redis_answers, third.ready) == (None, None, False, False)
    until(lambda: processes.identify(first.service) is None and processes.identify(first.redis) is None)
    assert not embedded.down(settings(state))


def test_five_commands_at_once_start_one_farm(state):
    fork = multiprocessing.get_context("fork")
    callers = [fork.Process(target=call_up, args=(settings(state),)) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert [caller.exitcode for caller in callers] == [0] * 5
    log = places(state).log("worker")
    until(lambda: places(state).ready.exists())
    assert log.read_text().count("service_started") == 1


def test_after_everything_was_killed_stale_records_do_not_stop_a_new_start(state):
    first = embedded.up(settings(state), wait_ready=True)
    ledger, (_job,) = submit(settings(state), "relu")
    os.killpg(first.service, signal.SIGKILL)
    os.kill(first.redis, signal.SIGKILL)
    until(lambda: processes.identify(first.service) is None and processes.identify(first.redis) is None)
    assert places(state).service_pid.exists()
    assert not embedded.status(settings(state)).running
    again = embedded.up(settings(state), wait_ready=True)
    assert again.running
    assert again.service != first.service
    assert finish(ledger) == {JobState.ACCEPTED}


def test_a_redis_that_dies_with_its_data_is_started_again_and_jobs_go_on(state):
    first = embedded.up(settings(state), wait_ready=True)
    ledger, _jobs = submit(settings(state), "relu", "softmax")
    os.kill(first.redis, signal.SIGKILL)
    shutil.rmtree(places(state).redis_data)
    until(lambda: embedded.status(settings(state)).redis not in (None, first.redis))
    assert finish(ledger) == {JobState.ACCEPTED}


def test_a_worker_process_that_dies_is_started_again(state):
    first = embedded.up(settings(state), wait_ready=True)
    children = Path(f"/proc/{first.service}/task/{first.service}/children").read_text().split()
    for child in map(int, children):
        if "workers.app" in Path(f"/proc/{child}/cmdline").read_text():
            os.kill(child, signal.SIGKILL)
    ledger, _ = submit(settings(state), "relu")
    assert finish(ledger) == {JobState.ACCEPTED}
    assert embedded.status(settings(state)).service == first.service


def test_an_idle_farm_stops_by_itself_with_its_redis(state):
    idle = settings(state, embedded=Embedded(idle_minutes=0.05))
    first = embedded.up(idle, wait_ready=True)
    until(lambda: processes.identify(first.service) is None and processes.identify(first.redis) is None)
    status = embedded.status(idle)
    assert (status.service, status.redis, status.redis_answers) == (None, None, False)
    ledger, _ = submit(idle, "relu")
    embedded.up(idle)
    assert finish(ledger) == {JobState.ACCEPTED}


KEY = "sk-ant-api03-canary-0123456789abcdefghijklmnop"


def holders(secret: str) -> set[int]:
    """Processes whose environment or command holds it."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        for name in ("environ", "cmdline"):
            try:
                if secret.encode() in (folder / name).read_bytes():
                    found.add(int(folder.name))
            except OSError:
                continue
    return found


def family(pid: int) -> set[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {pid, *map(int, children)}


def test_a_gateway_starts_beside_the_worker_alone_has_the_key_and_goes_down_with_it(state, monkeypatch):
    first = embedded.up(settings(state), wait_ready=True)
    assert first.gateway is None
    assert gateway_problem(settings(state)) is not None
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    again = embedded.up(settings(state), gateway=with_keys())
    assert (again.service, again.redis) == (first.service, first.redis)
    assert gateway_problem(settings(state)) is None
    assert embedded.up(settings(state), gateway=with_keys()).gateway == again.gateway
    assert holders(KEY) == family(again.gateway)
    embedded.down(settings(state))
    assert embedded.status(settings(state)).gateway is None
    fresh = embedded.up(settings(state), wait_ready=True, gateway=with_keys())
    assert holders(KEY) == family(fresh.gateway)  # no worker was given the key by the command that started it


def test_without_a_key_no_gateway_starts(state):
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
        embedded.up(settings(state), gateway={})


def test_a_gateway_that_was_killed_with_its_keeper_comes_back(state):
    of = settings(state, gateway=Gateway(url="http://127.0.0.1:9"))
    first = embedded.up(of, wait_ready=True, gateway=inherited())
    os.killpg(first.gateway, signal.SIGKILL)
    until(lambda: embedded.status(of).gateway not in (None, first.gateway))
    until(lambda: health(gateway_place(state)) is not None)


def test_an_idle_farm_stops_its_gateway_too(state):
    of = settings(state, gateway=Gateway(url="http://127.0.0.1:9"), embedded=Embedded(idle_minutes=0.05))
    first = embedded.up(of, wait_ready=True, gateway=inherited())
    assert first.gateway is not None
    until(lambda: processes.identify(first.gateway) is None)
    assert gateway_problem(of) is not None


def test_a_state_folder_with_a_long_path_works_too(tmp_path):
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    of = settings(deep)
    try:
        assert embedded.up(of, wait_ready=True).running
        ledger, jobs = submit(of, "relu")
        open_queue(embedded.connected(of)).enqueue(jobs[0], 0.0)
        assert finish(ledger) == {JobState.ACCEPTED}
    finally:
        embedded.down(of)
        places(deep).socket.parent.rmdir()


def test_a_given_redis_that_does_not_answer_is_an_error_and_starts_nothing(state):
    of = settings(state, broker=Broker(url=f"redis+socket://{state}/none.sock"))
    with pytest.raises(BrokerUnavailable):
        embedded.up(of)
    assert embedded.status(of).service is None


def test_a_redis_that_cannot_start_shows_its_own_words(state):
    where = places(state)
    where.redis_data.rmdir()
    where.redis_data.symlink_to("/proc")
    with pytest.raises(BrokerUnavailable, match="did not start"):
        embedded.up(settings(state))
    where.redis_data.unlink()

import pytest

from drivers import redis_server
from drivers.places import places
from farm.errors import BrokerUnavailable, ConfigurationError
from farm.job import Accept
from farm.ledger import Ledger
from farm.settings import Broker, Settings
from workers import processes
from workers.app import QUEUE, open_queue
from workers.health import broker_finding
from workers.reconciler import REAP, job_of
from workers.redis_link import RedisLink

pytestmark = pytest.mark.redis


@pytest.fixture
def where(tmp_path):
    where = places(tmp_path / "farm")
    redis_server.ensure(where, None)
    yield where
    redis_server.stop(where, grace_s=5)


def settings(where):
    return Settings(state=where.state, toolchain=where.state, broker=Broker(url=where.broker_url))


def test_messages_are_read_back_in_the_order_in_which_they_are_taken(where):
    ledger = Ledger(settings(where).ledger_url)
    ledger.submit(recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=1, ops=["a", "b"])
    queue = open_queue(settings(where))
    jobs = ledger.jobs()
    for job in jobs:
        queue.enqueue(job, 0.0)
    queue.enqueue_reap()
    assert [job_of(message) for message in queue.waiting()] == [jobs[0].id, jobs[1].id, REAP]
    assert len(set(RedisLink(where.broker_url).waiting_ids(QUEUE))) == 3
    ledger.close()


def test_the_embedded_redis_keeps_its_queue(where):
    finding = broker_finding(settings(where))
    assert finding.ok, finding.message


def test_a_redis_that_keeps_nothing_is_found_out(tmp_path):
    socket = tmp_path / "r.sock"
    command = (
        str(redis_server.find_program(None)),
        *("--port", "0", "--unixsocket", str(socket), "--save", "", "--maxmemory-policy", "allkeys-lru"),
    )
    pid = processes.start_detached(command, log=tmp_path / "log", cwd=tmp_path)
    identity = processes.identify(pid)
    link = RedisLink(f"redis+socket://{socket}")
    while not redis_server.answers(link):
        assert processes.alive(identity)
    problems = link.problems()
    processes.stop(identity, grace_s=5)
    assert len(problems) == 2
    assert any("appendonly yes" in problem for problem in problems)
    assert any("allkeys-lru" in problem for problem in problems)


def test_what_is_gone_says_so_and_what_to_do(where):
    redis_server.stop(where, grace_s=5)
    with pytest.raises(BrokerUnavailable, match=r"redis\.sock: No such file or directory; `farm up`"):
        RedisLink(where.broker_url, embedded=True).ping()
    queue = open_queue(settings(where))
    with pytest.raises(BrokerUnavailable):
        queue.waiting()
    with pytest.raises(BrokerUnavailable):
        queue.enqueue_reap()


def test_a_given_redis_that_is_gone_is_not_for_farm_up_to_start():
    with pytest.raises(BrokerUnavailable) as caught:
        RedisLink("redis://:secret@127.0.0.1:1/0").ping()
    assert str(caught.value) == (
        "Redis does not answer at redis://127.0.0.1:1/0: Connection refused; "
        "start it, or correct broker.url; without broker.url the farm starts a Redis of its own"
    )


def test_a_url_that_is_none_is_a_configuration_error():
    with pytest.raises(ConfigurationError, match=r"broker\.url"):
        RedisLink("nonsense://x").ping()


def test_a_program_that_is_no_redis_is_refused(tmp_path):
    with pytest.raises(BrokerUnavailable, match="redis_server"):
        redis_server.find_program(tmp_path / "none")

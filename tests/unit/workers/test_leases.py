import threading

import pytest

from farm.errors import StaleFence
from farm.job import Accept
from farm.ledger import Change, Ledger
from workers.leases import host_prefix, leased, owner_name


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield opened
    opened.close()


@pytest.fixture
def job_id(ledger):
    run = ledger.submit(
        recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=1, ops=["relu"]
    )
    return f"{run.id}.relu"


def test_owner_names_tell_their_host_and_are_never_used_twice():
    assert owner_name().startswith(host_prefix())
    assert owner_name() != owner_name()


def test_a_lease_is_kept_alive_by_its_heartbeat_for_as_long_as_the_block_lasts(ledger, job_id):
    beaten = threading.Event()

    class Watched(Ledger):
        def renew(self, job_id, fence, *, ttl_s):
            super().renew(job_id, fence, ttl_s=ttl_s)
            beaten.set()

    watched = Watched(f"sqlite:///{ledger._database._open().url.database}")
    with leased(watched, job_id, "a", ttl_s=0.3) as held:
        assert held is not None
        assert beaten.wait(30)
        with leased(watched, job_id, "b", ttl_s=0.3) as other:
            assert other is None
        watched.stay(held.grant.job, Change())
    beaten.clear()
    assert not any(thread.name == f"heartbeat {job_id}" for thread in threading.enumerate())
    watched.close()


def test_a_lease_that_went_to_another_is_noticed(ledger, job_id):
    with leased(ledger, job_id, "a", ttl_s=-1) as held:
        ledger.acquire(job_id, "b", ttl_s=60)
        with pytest.raises(StaleFence):
            held.check()

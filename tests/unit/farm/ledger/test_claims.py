import pytest

from farm.errors import StaleFence


def test_one_owner_has_a_claim_until_it_runs_out_or_is_given_back(ledger, clock):
    fence = ledger.claim("reconciler", "a", ttl_s=10)
    assert fence == ledger.claim("reconciler", "a", ttl_s=10)
    assert ledger.claim("reconciler", "b", ttl_s=10) is None
    assert ledger.claim("landing:x", "b", ttl_s=10) == 1
    clock.now += 11
    taken = ledger.claim("reconciler", "b", ttl_s=10)
    assert taken == fence + 1
    ledger.release_claim("reconciler", fence)
    assert ledger.claim("reconciler", "a", ttl_s=10) is None
    ledger.release_claim("reconciler", taken)
    assert ledger.claim("reconciler", "a", ttl_s=10) == taken + 1


def test_a_claim_is_kept_by_its_holder_alone(ledger, clock):
    old = ledger.claim("landing:x", "a", ttl_s=10)
    clock.now += 8
    ledger.keep_claim("landing:x", old, ttl_s=10)
    clock.now += 8
    assert ledger.claim("landing:x", "b", ttl_s=10) is None
    clock.now += 3
    ledger.claim("landing:x", "b", ttl_s=10)
    with pytest.raises(StaleFence):
        ledger.keep_claim("landing:x", old, ttl_s=10)


def test_an_owner_that_let_its_claim_run_out_gets_a_new_fence(ledger, clock):
    old = ledger.claim("x", "a", ttl_s=10)
    clock.now += 11
    assert ledger.claim("x", "a", ttl_s=10) == old + 1

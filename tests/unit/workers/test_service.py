from workers.service import Hearing


def test_a_message_that_lies_long_while_hands_are_free_means_deaf():
    hearing = Hearing(deaf_s=30)
    assert not hearing.deaf(("a", "b"), hands_free=True, now=0)
    assert not hearing.deaf(("a", "b"), hands_free=True, now=29)
    assert hearing.deaf(("a", "b"), hands_free=True, now=30)


def test_a_queue_that_moves_or_is_empty_or_waits_for_busy_hands_does_not():
    hearing = Hearing(deaf_s=30)
    hearing.deaf(("a",), hands_free=True, now=0)
    assert not hearing.deaf(("b",), hands_free=True, now=31)
    assert not hearing.deaf((), hands_free=True, now=62)
    assert not hearing.deaf(("b",), hands_free=True, now=70)
    assert not hearing.deaf(("b",), hands_free=False, now=101)
    assert not hearing.deaf(("b",), hands_free=True, now=130)


def test_after_a_restart_it_listens_anew():
    hearing = Hearing(deaf_s=30)
    hearing.deaf(("a",), hands_free=True, now=0)
    hearing.forget()
    assert not hearing.deaf(("a",), hands_free=True, now=40)

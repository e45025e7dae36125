from workers.filelock import FileLock


def test_one_holder_at_a_time(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.take()
    assert first.take()
    assert not second.take()
    first.release()
    assert not first.taken
    with second.held():
        assert not first.take()
    assert first.take()
    first.release()

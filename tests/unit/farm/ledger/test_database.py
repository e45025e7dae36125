import multiprocessing
import os
import sqlite3
from pathlib import Path

import pytest

from farm.errors import ConfigurationError, LedgerUnavailable
from farm.events import Landed
from farm.job import Accept, JobState
from farm.ledger import Change, Ledger

WRITERS = 8
ROUNDS = 12


def submit_one(ledger: Ledger, *ops: str) -> str:
    return ledger.submit(
        recipe="r", repo="x", push_to=None, base="b", accept=Accept.MEASURED, attempts=1, ops=ops
    ).id


def write_much(url: str, shared: str, number: int) -> None:
    """Every writer logs to one job, moves a job of its own and fights for a third."""
    ledger = Ledger(url)
    run = submit_one(ledger, f"own{number}")
    for turn in range(ROUNDS):
        ledger.log(shared, Landed(branch=f"w{number}", commit=str(turn)))
        grant = ledger.acquire(shared, f"w{number}", ttl_s=60)
        if grant is not None:
            ledger.stay(grant.job, Change(artifacts={f"w{number}-{turn}": "0" * 64}))
    grant = ledger.acquire(f"{run}.own{number}", f"w{number}", ttl_s=60)
    assert grant is not None
    ledger.move(grant.job, JobState.PREPARING, Change())
    ledger.close()


def test_eight_processes_that_open_a_new_ledger_and_write_lose_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    shared = f"{submit_one(Ledger(url), 'shared')}.shared"
    spawn = multiprocessing.get_context("fork")
    writers = [spawn.Process(target=write_much, args=(url, shared, n)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    ledger = Ledger(url)
    landed = [e.event for e in ledger.events(job=shared) if isinstance(e.event, Landed)]
    assert {(e.branch, e.commit) for e in landed} == {
        (f"w{n}", str(turn)) for n in range(WRITERS) for turn in range(ROUNDS)
    }
    # The fence counts acquisitions, and every one of them left an artifact.
    assert ledger.job(shared).fence == len(ledger.artifacts(shared)) > 0
    assert len(ledger.jobs(states=[JobState.PREPARING])) == WRITERS
    ledger.close()


def test_a_ledger_that_was_used_before_a_fork_opens_anew_in_the_child(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    run = submit_one(ledger, "relu")
    child = os.fork()
    if child == 0:
        ledger.log(f"{run}.relu", Landed(branch="child", commit="1"))
        os._exit(0)
    ledger.log(f"{run}.relu", Landed(branch="parent", commit="1"))
    assert os.waitpid(child, 0)[1] == 0
    landed = {e.event.branch for e in ledger.events(run=run) if isinstance(e.event, Landed)}
    assert landed == {"child", "parent"}
    ledger.close()


def test_a_reader_is_not_stopped_by_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(f"sqlite:///{path}")
    run = submit_one(ledger, "relu")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert ledger.status(run).counts == {JobState.QUEUED: 1}
    other.execute("ROLLBACK")
    other.close()
    ledger.close()


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = Ledger(f"sqlite:///{path}")
    first.runs()
    first.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = '0'")
    connection.close()
    with pytest.raises(ConfigurationError, match="version 0"):
        Ledger(f"sqlite:///{path}").runs()


@pytest.mark.parametrize("content", [b"this is no database, only text" * 100])
def test_a_file_that_is_no_ledger_is_said_to_be_unusable(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.db").write_bytes(content)
    with pytest.raises(LedgerUnavailable, match="state folder"):
        Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").runs()


def test_a_folder_that_cannot_be_made_is_said_to_be_unusable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable):
        Ledger(f"sqlite:///{tmp_path / 'file' / 'ledger.db'}").runs()


@pytest.mark.parametrize("url", ["nonsense", "nosuchdb://x/y"])
def test_a_wrong_url_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ledger\.url"):
        Ledger(url).runs()

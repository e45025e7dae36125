import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farm.job import Accept, Job
from farm.ledger import Ledger


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger to copy: making its tables takes longer than most tests."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    made = Ledger(f"sqlite:///{path}")
    made.runs()
    made.close()
    return path


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock, empty: Path) -> Iterator[Ledger]:
    shutil.copy(empty, tmp_path / "ledger.db")
    opened = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", clock)
    yield opened
    opened.close()


@pytest.fixture
def submit(ledger: Ledger) -> Callable[..., tuple[Job, ...]]:
    def submitted(*ops: str, attempts: int = 2) -> tuple[Job, ...]:
        run = ledger.submit(
            recipe="cutile-rs",
            repo="builtin:minigym",
            push_to=None,
            base="b" * 40,
            accept=Accept.MEASURED,
            attempts=attempts,
            ops=ops or ("relu",),
        )
        return ledger.jobs(run=run.id)

    return submitted

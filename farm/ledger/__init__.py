"""The ledger: the truth about runs and jobs, in one SQL database."""

from farm.ledger.claims import Claims
from farm.ledger.history import History
from farm.ledger.leases import Leases
from farm.ledger.money import Money
from farm.ledger.moves import Moves
from farm.ledger.records import (
    TRACE,
    Answer,
    Attempt,
    BudgetReached,
    Budgets,
    Change,
    Charge,
    Grant,
    JobRef,
    Reservation,
    RunStatus,
    Scope,
    Usage,
)
from farm.ledger.runs import Runs
from farm.ledger.turns import Turns

__all__ = [
    "TRACE",
    "Answer",
    "Attempt",
    "BudgetReached",
    "Budgets",
    "Change",
    "Charge",
    "Grant",
    "JobRef",
    "Ledger",
    "Reservation",
    "RunStatus",
    "Scope",
    "Usage",
]


class Ledger(Runs, Leases, Turns, Moves, History, Money, Claims):
    """All of the ledger. Safe to make before a fork: it connects at first use, once a process."""

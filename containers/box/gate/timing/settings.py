"""How timing is done: fixed counts, no budgets of time that a candidate could stretch."""

import sys
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Counts of one run. `farm.measured` decides how many blocks are enough."""

    blocks: int = 8  #: ABBA blocks of a stage
    calls: int = 2  #: calls in a slot
    warmup: int = 20  #: calls before the first timed one, tuning and compilation not counted
    flush_factor: float = 2.0  #: memory written before each call, as a multiple of the L2 cache
    short_ns: int = 20_000  #: kernels shorter than this get twice the blocks
    long_ns: int = 500_000  #: what takes longer lies where it is for a whole stage, not for one block
    most: int = 4  #: most blocks, as a multiple of `blocks`
    control_configs: int = 3  #: configurations that also time the reference against itself
    rows: int | None = None  #: most performance rows, spread evenly; the others are recorded as left out
    generated: int = 6  #: configurations made from correctness rows, where no row measures
    late_s: float = 0.05  #: wait before looking for work that went on after the synchronisation
    start_s: float = 300.0  #: limit of a child's start, collection included
    open_s: float = 900.0  #: limit of setting up one configuration on one side, tuning included
    call_s: float = 60.0  #: limit of a single step otherwise
    python: str = sys.executable  #: interpreter of the children
    restarts: int = 3  #: children started again after a crash, a side

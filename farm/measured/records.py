"""Raw records of a GPU machine: one line of JSON each, from which every ruling is recomputed.

Written by `containers.box.gate`, read by `farm.measured`. Standard library alone: both ends need it.
"""

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """What a row was run for."""

    SOURCE = "source"  #: the bare base with its source backend: what is expected
    TARGET = "target"  #: the bare base plus the patch with the target backend
    STUB = "stub"  #: as TARGET, with a library whose exports all fail: every row must fail
    HOLLOW = "hollow"  #: as TARGET, with a library whose exports do nothing and report success: as STUB
    NULL = "null"  #: as SOURCE, with the op's outputs replaced: every row must fail


class Outcome(StrEnum):
    """How a row ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"  #: time limit, or its process died before it


@dataclass(frozen=True, kw_only=True)
class ResultFact:
    """One tensor that the op gave back, as a caller sees it."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]  #: elements
    dtype: str  #: e.g. `float16`
    requires_grad: bool


@dataclass(frozen=True, kw_only=True)
class RowRun:
    """One row in one phase."""

    subject: str
    phase: Phase
    key: str  #: name of the row without its backend, equal for source and target
    node: str  #: pytest node id
    outcome: Outcome
    reason: str | None  #: why it did not pass: last line of the error
    seconds: float  #: wall clock
    null: str | None = None  #: NULL only: `zeros`, `mean`, `input` or `last`
    calls: int | None = None  #: calls of the library's exports during the row, by the interposed library
    kernels: dict[str, int] | None = None  #: device symbols launched during the row, counted; None: no CUPTI
    lost: int = 0  #: device records that CUPTI dropped during the row
    results: tuple[ResultFact, ...] = ()  #: of the row's calls of the op, in order
    backwards: int = 0  #: calls of autograd's engine during the row


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What pytest collected of one side."""

    subject: str
    phase: Phase  #: SOURCE or TARGET
    keys: tuple[str, ...]
    uncollected: tuple[str, ...]  #: files that could not be collected, with the reason
    process: dict[
        str, str
    ]  #: facts of the process; those of `farm.measured.process.CLEAN` are empty when all is well


#: With this begins what a probe's `source_raised` or `target_raised` says where that side was not run.
NOT_RUN = "not run: "


class ProbeKind(StrEnum):
    """What a probe varies."""

    SEED = "seed"  #: other values of the same kind
    EDGE = "edge"  #: NaN, infinities, signed zeros, denormals, largest magnitudes, ties
    SHAPE = "shape"  #: shapes off the list
    STRIDED = "strided"  #: arguments that are not contiguous


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The worst element of a comparison."""

    output: int  #: position among the outputs
    index: tuple[int, ...]
    oracle: float | None  #: in float64; None: there is no oracle
    source: float
    target: float


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One call of the op on inputs that the repository does not test.

    Errors are the largest |value - oracle| over elements where oracle and source are finite, as a multiple
    of one unit in the last place of the output's dtype at the oracle's magnitude; the unit has a floor for
    elements that are small beside their row, where terms cancel (`containers.box.gate.probes.ulp.unit`).
    An element where the target is not finite and the source is counts as `unequal_special`, not as an error.
    Results are what the call returned, then gradients, then arguments that the call changed.
    A probe that says nothing (the source raised, the process that called it died, or time ran out) has
    `source_raised`, and its other fields are not filled in.
    """

    subject: str
    key: str  #: the row whose call was varied
    kind: ProbeKind
    name: str  #: e.g. `nan`, `shape (7, 33)`, `seed 3`
    source_raised: str | None  #: the source's error; such a probe says nothing unless the target returns
    target_raised: str | None
    source_error_ulp: float | None  #: None: no oracle, or nothing to compare
    target_error_ulp: float | None
    unequal_special: int  #: elements where one is NaN or infinite and the other is not, or not of the same sign
    unequal_facts: str | None  #: how shape, stride, dtype or requires_grad of the results differ
    poisoned: int  #: elements that the target did not write
    inputs_changed: tuple[str, ...]  #: arguments that the target changed and the source did not
    source_repeats: bool | None  #: whether the source gave the same bits twice; None: not tried
    target_repeats: bool | None
    worst: Difference | None = None
    distance_ulp: float | None = None  #: largest |target - source|, in units at the source
    function: str = ""  #: name in the registry of what was called

    @property
    def unrun(self) -> str | None:
        """Why a side was not run, or None: both gave results or errors of their own."""
        said = (self.source_raised, self.target_raised)
        return next((text for text in said if text is not None and text.startswith(NOT_RUN)), None)


@dataclass(frozen=True, kw_only=True)
class DeviceEvent:
    """One CUPTI record of a kernel, copy or memset."""

    symbol: str
    start_ns: int
    end_ns: int
    stream: int
    correlation: int


@dataclass(frozen=True, kw_only=True)
class TimedCall:
    """One call during timing. `reference` says which implementation ran; a control times the reference twice."""

    subject: str
    config: str  #: name of the configuration, equal for both sides
    control: bool  #: an A/A call
    block: int  #: from 0; a block is A B B A
    slot: int  #: 0..3 within the block
    repeat: int  #: call within the slot
    reference: bool  #: the source's implementation (in a control: the side that stands for it)
    events: tuple[DeviceEvent, ...]
    lost: int  #: device records that CUPTI dropped
    late: int  #: records that came after the synchronisation
    wall_ns: int  #: host time of the call, reported and never gated
    same_output: bool  #: the output agreed with the reference's for the same inputs
    sm_clock_mhz: int | None  #: None: not readable
    throttle: int | None  #: mask of NVML's throttle reasons that matter (thermal, power brake); None: not readable
    stale: bool = False  #: the output is that of an earlier call of this side with other inputs


@dataclass(frozen=True, kw_only=True)
class ConfigFact:
    """One timed configuration."""

    subject: str
    config: str
    origin: str  #: `perf row` or `generated`
    bytes_least: int | None  #: least memory traffic of the op (inputs plus outputs), bytes
    problem: str | None  #: why it could not be timed
    second_reference: bool = False  #: times another implementation of the repository instead of the target
    problem_of: str | None = None  #: `source`, `target`, or `settings` that left it out; None: the measuring's


@dataclass(frozen=True, kw_only=True)
class Foul:
    """Something that only a candidate that means to deceive does, seen from outside of its process."""

    subject: str
    what: str  #: e.g. `the rows part: a process spoke for the gate`


Record = Collected | RowRun | Probe | ConfigFact | TimedCall | Foul

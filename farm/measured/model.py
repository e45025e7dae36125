"""What the rules are told and what they say. Needs no numpy, so that a command may read it at no cost."""

from dataclasses import dataclass, field

from farm.gates import GateName, GateResult, Ruling

#: Device work that is no kernel, as the collector names it. Brackets cannot be part of a kernel's name.
MEMCPY, MEMSET = "[memcpy", "[memset"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is measured and what it must reach."""

    limit: float = 0.95  #: geomean speedup
    blocks: int = 8  #: ABBA blocks a config at first
    times: int = 4  #: how often so many at most, while the interval holds the limit
    control_within: float = 0.01  #: how far the A/A control's geomean may be from 1
    dropped_share: float = 0.25  #: of blocks, beyond which nothing follows


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is judged, where, and by which numbers."""

    subject: str
    op: str
    patch_sha256: str  #: of the patch that the target's tree holds
    gpu: str  #: name as the driver gives it, e.g. `NVIDIA H200`
    toolchain: dict[str, str]  #: versions of driver, compiler, torch, cuda-tile, cutile, ..
    entries: tuple[str, ...]  #: device symbols of the candidate's kernels
    source_kernels: tuple[str, ...] = ()  #: names with which the source kernels' device symbols begin
    declared: tuple[str, ...] = ()  #: further device symbols that the target may launch
    plan: Plan = field(default_factory=Plan)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One reason why a gate does not pass."""

    ruling: Ruling  #: any but PASS
    reason: str


@dataclass(frozen=True, kw_only=True)
class Flag:
    """Something that decides nothing and that a person should look at."""

    where: str  #: row or config
    what: str


@dataclass(frozen=True, kw_only=True)
class RowLine:
    """One expected row in a report."""

    key: str
    target: str  #: the target's outcome, or why it does not count as a pass
    counts: bool  #: whether passing it proves anything
    kernels: tuple[str, ...]  #: the candidate's entries that ran
    calls: int | None  #: calls of the library's exports


@dataclass(frozen=True, kw_only=True)
class ConfigLine:
    """One timed config in a report. Ratios above 1: the target is faster."""

    config: str
    origin: str
    blocks: int  #: that count
    dropped: int  #: throttled or incomplete
    outliers: int  #: blocks further from the median than 5 median absolute deviations; they count
    low: float | None  #: 95 % interval; None: not measured
    ratio: float | None
    high: float | None
    reference_us: float | None  #: median device time of a call
    target_us: float | None
    reference_wall_us: float | None  #: median host time of a call, decides nothing
    target_wall_us: float | None
    problem: str | None = None  #: why it was not measured


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Everything that follows from the raw records of one op with one patch on one GPU with one toolchain."""

    subject: str
    op: str
    patch_sha256: str
    gpu: str
    toolchain: dict[str, str]
    gates: tuple[GateResult, ...]  #: all three, in the order of GateName
    rows_expected: int
    rows_collected: int  #: of the expected rows, those that the target collected
    rows: tuple[RowLine, ...]
    configs: tuple[ConfigLine, ...]  #: the frozen list
    second: tuple[ConfigLine, ...]  #: the repository's second reference in the target's place
    control: float | None  #: geomean of the A/A control
    low: float | None  #: of the geomean
    ratio: float | None
    high: float | None
    flags: tuple[Flag, ...]
    schema: int = 1

    def gate(self, name: GateName) -> GateResult:
        """One gate's result."""
        return next(result for result in self.gates if result.gate is name)

    @property
    def passed(self) -> bool:
        """Whether all three gates passed."""
        return {r.gate for r in self.gates if r.ruling is Ruling.PASS} == set(GateName)

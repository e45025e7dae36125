"""What crosses the wall of a box: an order in, a result out, a heartbeat meanwhile."""

from dataclasses import dataclass
from enum import StrEnum

from farm.fault import Fault
from farm.pipeline.stage import ExecutorKind, Reply, Stage


class Purpose(StrEnum):
    """What a box is for."""

    PIPELINE = "pipeline"  #: run the stages on a workspace
    GATE = "gate"  #: judge the bare base plus the patch
    BUILD = "build"  #: build the library of a tree, nothing else
    MEASURE = "measure"  #: run a bundle's gates on a GPU


@dataclass(frozen=True, kw_only=True)
class BoxOrder:
    """order.json, mounted read-only at /farm/order.json."""

    purpose: Purpose
    run: str
    job: str
    attempt: int  #: from 1
    op: str
    recipe: str
    conversion: str  #: package under farm/recipes
    source: str  #: source backend
    target: str  #: target backend
    gpu: str  #: architecture the compilers aim at, e.g. `sm_90`
    executors: dict[Stage, ExecutorKind]
    caps: dict[Stage, int]  #: most visits of each stage
    stage_limit_s: float  #: wall clock of one stage
    previous_trace: str | None  #: path in the box of the last attempt's trace, or None
    patch_sha256: str | None = None  #: of the patch that a gate judges
    script: str | None = None  #: path in the box of a scripted executor's steps
    schema: int = 1


@dataclass(frozen=True, kw_only=True)
class StageRecord:
    """One executed stage."""

    stage: Stage
    visit: int  #: 1 for the first time
    executor: ExecutorKind
    reply: Reply
    seconds: float  #: wall clock
    next: str  #: next stage, `complete`, `diagnosed` or `stop`
    malformed: str | None = None  #: why the reply could not be read


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Why a box did not finish its work."""

    stage: Stage | None  #: None: not inside a stage
    fault: Fault
    summary: str  #: one sentence
    next_step: str  #: what a person should do


#: The library that a box built, compressed by xz, in its artifact folder.
LIBRARY = "library.so.xz"


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """/out/build.json of a box that only builds."""

    diagnosis: Diagnosis | None  #: None: the library is there
    seconds: float  #: of the build
    schema: int = 1


@dataclass(frozen=True, kw_only=True)
class BoxResult:
    """/out/result.json, written once, by rename."""

    complete: bool  #: the route reached complete without a diagnosis
    records: tuple[StageRecord, ...]
    diagnosis: Diagnosis | None
    schema: int = 1

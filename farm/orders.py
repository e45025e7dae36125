"""What crosses the wall of a box: an order in, a result out, a heartbeat meanwhile."""

from dataclasses import dataclass
from enum import StrEnum

from farm.fault import Fault
from farm.job import ParkReason
from farm.pipeline.stage import ExecutorKind, Reply, Stage


class Purpose(StrEnum):
    """What a box is for."""

    PIPELINE = "pipeline"  #: run the stages on a workspace
    GATE = "gate"  #: judge the bare base plus the patch
    BUILD = "build"  #: build the library of a tree, nothing else
    MEASURE = "measure"  #: run a bundle's gates on a GPU


@dataclass(frozen=True, kw_only=True)
class AgentChoice:
    """The model that acts in a stage, and how far it may go in one visit."""

    model: str  #: id as it is sent to the API
    max_tokens: int  #: of one reply
    thinking_budget: int | None  #: tokens; None: none, or the model decides
    effort: str | None  #: for models that take one
    calls: int  #: most model calls
    minutes: float  #: wall clock
    tokens: int  #: most tokens read and written, all classes together


@dataclass(frozen=True, kw_only=True)
class AgentOrder:
    """What a box needs to let agents work. No secret: the token is in a file of its own."""

    choices: dict[Stage, AgentChoice]
    socket: str = "/farm/gateway/gateway.sock"  #: path in the box of the gateway's socket
    token_file: str = "/farm/token"  #: path in the box of the job's token, read-only
    gpu_socket: str | None = None  #: path in the box of the GPU broker's socket; None: this host has none


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
    agents: AgentOrder | None = None  #: None: no agent is offered
    schema: int = 1


@dataclass(frozen=True, kw_only=True)
class StageRecord:
    """One executed stage."""

    stage: Stage
    visit: int  #: 1 for the first time
    executor: ExecutorKind  #: who gave the reply; never `auto`
    reply: Reply
    seconds: float  #: wall clock
    next: str  #: next stage, `complete`, `diagnosed` or `stop`
    malformed: str | None = None  #: why the reply could not be read
    program: Reply | None = None  #: what the program said before an agent took over
    calls: int = 0  #: model calls of this visit so far, a repair's included
    tokens: int = 0  #: tokens read and written by them, all classes together
    contradiction: str | None = None  #: what the agent claimed against the validators that we ran


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
class Parking:
    """Why a box stopped before its work was done."""

    reason: ParkReason  #: MODEL or BUDGET
    summary: str  #: one sentence
    after_s: float | None = None  #: what the gateway says about when to come back, seconds


@dataclass(frozen=True, kw_only=True)
class BoxResult:
    """/out/result.json, written once, by rename."""

    complete: bool  #: the route reached complete without a diagnosis
    records: tuple[StageRecord, ...]
    diagnosis: Diagnosis | None
    parked: Parking | None = None  #: set: the route is not at its end; a new box on the same folders goes on
    schema: int = 1

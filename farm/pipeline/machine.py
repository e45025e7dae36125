"""The pipeline's router: `step(state, reply) -> Transition`, pure and total.

It costs nothing, it never guesses (a failure without an owner stops the run), and it always ends:
each transition into a stage uses up one of that stage's visits, and visits are capped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.pipeline.stage import Reply, Stage, Verdict
from farm.pipeline.table import GOOD, End, Key, RouteTable, Visit


@dataclass(frozen=True, kw_only=True)
class Malformed:
    """A reply that could not be read; the same executor may repair it once."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class PipelineState:
    """Where a route is."""

    stage: Stage  #: the stage that runs now
    visits: Mapping[Stage, int] = field(default_factory=dict)  #: visits begun, this one included
    repaired: bool = False  #: this visit has used its repair


@dataclass(frozen=True, kw_only=True)
class Transition:
    """What happens next."""

    state: PipelineState | None  #: None: the route has ended
    end: End | None  #: None: it goes on
    reason: str  #: one sentence for the event log


def begin(table: RouteTable) -> PipelineState:
    """The state before the first reply."""
    return PipelineState(stage=table.start, visits={table.start: 1})


def step(table: RouteTable, state: PipelineState, reply: Reply | Malformed) -> Transition:
    """The transition that `reply` causes. Total: every reply of every kind has one."""
    stage = state.stage
    if isinstance(reply, Malformed):
        return _malformed(state, reply)
    if reply.verdict not in table.verdicts[stage]:
        return _malformed(state, Malformed(reason=f"{reply.verdict.value} is no verdict of {stage.value}"))
    if reply.verdict not in GOOD and reply.owner is None:
        return _ended(End.STOP, f"{stage.value} said {reply.verdict.value} without an owner")
    if reply.verdict is Verdict.INVESTIGATE and reply.fail_class is None:
        return _malformed(state, Malformed(reason="INVESTIGATE does not say what is slow"))
    target = table.rows.get(_key(state, reply))
    if target is None:
        return _ended(End.STOP, f"no row for {stage.value} {reply.verdict.value}")
    if isinstance(target, End):
        return _ended(target, f"{stage.value} said {reply.verdict.value}")
    return _enter(table, state, target, reply)


def _key(state: PipelineState, reply: Reply) -> Key:
    return Key(
        stage=state.stage,
        visit=Visit.FIRST if state.visits.get(state.stage, 1) == 1 else Visit.LATER,
        verdict=reply.verdict,
        owner=None if reply.verdict in GOOD else reply.owner,
        fail_class=reply.fail_class if reply.verdict is Verdict.INVESTIGATE else None,
    )


def _enter(table: RouteTable, state: PipelineState, target: Stage, reply: Reply) -> Transition:
    used = state.visits.get(target, 0)
    if used >= table.caps[target]:
        return _ended(End.DIAGNOSED, f"{target.value} would follow, and its cap of {used} is spent")
    visits = {**state.visits, target: used + 1}
    entered = PipelineState(stage=target, visits=visits)
    return Transition(
        state=entered, end=None, reason=f"{state.stage.value} said {reply.verdict.value}: {target.value}"
    )


def _malformed(state: PipelineState, reply: Malformed) -> Transition:
    if state.repaired:
        return _ended(End.STOP, f"{state.stage.value} is malformed after its repair: {reply.reason}")
    again = PipelineState(stage=state.stage, visits=state.visits, repaired=True)
    return Transition(state=again, end=None, reason=f"{state.stage.value} is malformed: {reply.reason}")


def _ended(end: End, reason: str) -> Transition:
    return Transition(state=None, end=end, reason=reason)

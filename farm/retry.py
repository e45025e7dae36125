"""What follows a failure: another attempt, a transient retry, the end, or a wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from farm.fault import Fault
from farm.pipeline.stage import ExecutorKind, Stage


class After(StrEnum):
    """What a job does after a failure."""

    ATTEMPT = "attempt"  #: begins its next attempt
    TRANSIENT = "transient"  #: repeats this attempt, uncounted
    FAIL = "fail"  #: ends with the trace of this attempt
    PARK = "park"  #: waits until there is money again


#: Executors that read the last attempt's trace, so that a new attempt has new inputs.
READS_TRACE = frozenset({ExecutorKind.AGENT, ExecutorKind.AUTO, ExecutorKind.SCRIPTED})


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How much of its chances a job has used."""

    attempt: int  #: number of the attempt that failed, from 1
    attempts: int  #: most attempts the job may use
    transients: int  #: transient retries used
    transient_retries: int  #: most transient retries


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What to do after a failure, and why."""

    after: After
    reason: str  #: one sentence


def same_inputs(last: Mapping[Stage, ExecutorKind], following: Mapping[Stage, ExecutorKind]) -> bool:
    """Whether the next attempt would get what the last one got: same executors, none reads the trace."""
    return dict(last) == dict(following) and not READS_TRACE.intersection(following.values())


def decide(fault: Fault, counts: Counts, *, repeats: bool) -> Decision:
    """What follows a failure charged to `fault`; `repeats`: a next attempt would have identical inputs."""
    match fault:
        case Fault.AGENT | Fault.KERNEL:
            if counts.attempt >= counts.attempts:
                return Decision(
                    after=After.FAIL, reason=f"attempt {counts.attempt} of {counts.attempts} was the last"
                )
            if repeats:
                return Decision(after=After.FAIL, reason="another attempt would have identical inputs")
            return Decision(after=After.ATTEMPT, reason=f"attempt {counts.attempt} of {counts.attempts} failed")
        case Fault.DSL_LIMIT | Fault.COMPILER_BUG | Fault.UNSUPPORTED | Fault.INTEGRITY:
            return Decision(after=After.FAIL, reason=f"{fault} is final: trying again changes nothing")
        case Fault.HANG | Fault.ENV | Fault.INFRA:
            if counts.transients >= counts.transient_retries:
                return Decision(after=After.FAIL, reason=f"{counts.transients} transient retries did not help")
            return Decision(
                after=After.TRANSIENT,
                reason=f"transient retry {counts.transients + 1} of {counts.transient_retries}",
            )
        case Fault.BUDGET:
            return Decision(after=After.PARK, reason="the budget is spent")
        case _:
            assert_never(fault)

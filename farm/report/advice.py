"""What a person can do next, by fault and by state, where nothing more exact is known."""

from typing import assert_never

from farm.fault import Fault
from farm.job import Job, JobState, ParkReason


def fault_advice(fault: Fault) -> str:
    """The next step for a job that failed with `fault`."""
    match fault:
        case Fault.AGENT:
            return "read the failing stage's log, correct its cause, then `farm retry` the job"
        case Fault.KERNEL:
            return "look at the first difference, correct the kernel or the rule, then `farm retry`"
        case Fault.DSL_LIMIT:
            return "the pinned target version cannot say it: pin a newer one, or rewrite the source kernel"
        case Fault.COMPILER_BUG:
            return "report the compiler's failure with the kept Tile IR, or pin another version of it"
        case Fault.UNSUPPORTED:
            return "rewrite the construct that is named, or add a rule for it to the recipe's translator"
        case Fault.INTEGRITY:
            return "remove the forbidden change or the readable answer that is named, then submit the op again"
        case Fault.HANG:
            return "see where the log stops; raise the stage's time limit in the recipe if it was still working"
        case Fault.ENV:
            return "run `farm doctor` and correct what it marks, then `farm retry` the job"
        case Fault.INFRA:
            return "run `farm doctor` on the worker's machine, then `farm retry` the job"
        case Fault.BUDGET:
            return "raise the run's budget, then `farm retry` the job"
    assert_never(fault)


def park_advice(reason: ParkReason) -> str:
    """What ends a job's parking."""
    match reason:
        case ParkReason.MODEL:
            return "nothing to do: it goes on when the model API answers again"
        case ParkReason.BUDGET:
            return "raise the run's budget; it goes on from the stage it left"
        case ParkReason.DISK:
            return "free space in the state folder; it goes on by itself"
        case ParkReason.BROKER:
            return "start Redis (`farm up` where it is the farm's own); it goes on by itself"
        case ParkReason.ENGINE:
            return "start the container engine; it goes on by itself"
        case ParkReason.GPU_LOST:
            return "see why the GPU vanished (`nvidia-smi`); it goes on when one is free"
    assert_never(reason)


def state_advice(job: Job) -> str:
    """The next step for a job that has not failed."""
    match job.state:
        case JobState.AWAITING_GPU:
            return (
                "start a worker on a GPU machine against the same ledger, "
                "or submit with --accept certified to land on certificates"
            )
        case JobState.PARKED:
            return park_advice(job.park_reason) if job.park_reason else "see the worker's log"
        case JobState.CANCELLED:
            return f"`farm retry {job.id}` starts it again"
        case JobState.FAILED:
            return f"read the evidence, then `farm retry {job.id}`"
        case JobState.ACCEPTED:
            return f"look at the commit on {job.branch}"
        case (
            JobState.QUEUED
            | JobState.PREPARING
            | JobState.RUNNING
            | JobState.CAPTURED
            | JobState.VERIFYING
            | JobState.LANDING
        ):
            return f"it is under way: `farm status {job.run}`"
    assert_never(job.state)

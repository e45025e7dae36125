"""Whether a program's reply leaves an agent something to do: a table, so that nothing happens by accident."""

from farm.fault import Fault, Owner
from farm.pipeline.stage import Reply, Stage, Verdict
from farm.pipeline.table import GOOD

#: Faults that no agent can do anything about.
FINAL_FAULTS = frozenset({Fault.ENV, Fault.INTEGRITY, Fault.BUDGET})
#: Failures that are a stage's finished work: a diagnosis, or a fault found in another stage's part.
FINISHED = frozenset(
    {
        (Stage.C, Verdict.FAIL_FIXABLE, Owner.HOST),
        (Stage.C, Verdict.FAIL_FIXABLE, Owner.KERNEL),
        (Stage.D, Verdict.FAIL, Owner.KERNEL),
        (Stage.E, Verdict.BLOCKED, Owner.KERNEL),
        (Stage.F, Verdict.FIXABLE, Owner.HOST),
        (Stage.F, Verdict.FIXABLE, Owner.KERNEL),
    }
)


def unfinished(stage: Stage, reply: Reply) -> bool:
    """Whether an agent should go on where the program's reply ends."""
    if reply.verdict in GOOD or reply.fault in FINAL_FAULTS:
        return False
    return (stage, reply.verdict, reply.owner) not in FINISHED

"""What becomes of a good verdict that a validator contradicts: the stage's failure, with an owner. Pure.

The first validator that is not good decides. Its message begins with the owner (`kernel: ..`), since a build may
fail in either's file; the table holds for a message that does not.
"""

from collections.abc import Mapping, Sequence

from farm.fault import Fault, Owner
from farm.pipeline.stage import Reply, Stage, ValidatorExit, Verdict
from farm.recipes import Exit

#: Stage and validator to the verdict that a bad exit amounts to, and whose part it is.
VERDICTS: Mapping[tuple[Stage, str], tuple[Verdict, Owner]] = {
    (Stage.A, "preflight"): (Verdict.BLOCKED, Owner.ENV),
    (Stage.A, "analysis"): (Verdict.FAIL_FIXABLE, Owner.ENV),
    (Stage.A, "reference-ir"): (Verdict.FAIL_FIXABLE, Owner.ENV),
    (Stage.B, "entry"): (Verdict.FAIL_FIXABLE, Owner.KERNEL),
    (Stage.B, "compiles"): (Verdict.FAIL_COMPILE, Owner.KERNEL),
    (Stage.B, "generated-ir"): (Verdict.FAIL_FIXABLE, Owner.KERNEL),
    (Stage.B, "lint"): (Verdict.FAIL_FIXABLE, Owner.KERNEL),
    (Stage.C, "reference-ir"): (Verdict.BLOCKED, Owner.ENV),
    (Stage.C, "generated-ir"): (Verdict.BLOCKED, Owner.KERNEL),
    (Stage.C, "ir-diagnosis"): (Verdict.BLOCKED, Owner.ENV),
    (Stage.D, "registration"): (Verdict.FAIL, Owner.HOST),
    (Stage.D, "lint"): (Verdict.FAIL, Owner.HOST),
    (Stage.D, "entry"): (Verdict.FAIL, Owner.KERNEL),
    (Stage.D, "kernel"): (Verdict.FAIL, Owner.KERNEL),
    (Stage.D, "host"): (Verdict.FAIL, Owner.HOST),
    (Stage.D, "symbol"): (Verdict.FAIL, Owner.HOST),
    (Stage.E, "performance"): (Verdict.BLOCKED, Owner.ENV),
    (Stage.F, "performance"): (Verdict.BLOCKED, Owner.ENV),
    (Stage.F, "performance-diagnosis"): (Verdict.BLOCKED, Owner.ENV),
}


def contradicted(stage: Stage, exits: Sequence[ValidatorExit]) -> Reply:
    """The failure that the first red exit amounts to. One that could not be run is the environment's."""
    red = next(item for item in exits if item.exit_code != Exit.GOOD)
    said, _, rest = red.message.partition(": ")
    named = said in set(Owner)
    if red.exit_code != Exit.BAD or (stage, red.name) not in VERDICTS:
        verdict, owner, fault = Verdict.BLOCKED, Owner.ENV, Fault.ENV
    else:
        verdict, owner = VERDICTS[(stage, red.name)]
        owner = Owner(said) if named else owner
        fault = Fault.KERNEL if owner is Owner.KERNEL else Fault.AGENT
    what = "could not be run" if red.exit_code != Exit.BAD else "says otherwise"
    return Reply(
        verdict=verdict,
        owner=owner,
        fault=fault,
        fail_class=None,
        validators=tuple(exits),
        summary=f"{red.name} {what}: {rest if named else red.message}",
    )

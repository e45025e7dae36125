"""What a conversion without validators or an output contract inherits."""

from farm.errors import UsageError
from farm.fault import Fault, Owner
from farm.orders import BoxOrder, StageRecord
from farm.pipeline.stage import Finding, Reply, Stage, ValidatorExit, Verdict
from farm.recipes import BoxIO, Validated, Validator

#: Whose part a stage's own work is, where nothing says it better.
OWN_PART = {
    Stage.A: Owner.KERNEL,
    Stage.B: Owner.KERNEL,
    Stage.C: Owner.KERNEL,
    Stage.D: Owner.HOST,
    Stage.E: Owner.HOST,
    Stage.F: Owner.HOST,
}


class Unvalidated:
    """Nothing is checked before the gates. `farm.recipes.Conversion` says what each method promises."""

    def validators(self, stage: Stage) -> tuple[Validator, ...]:
        """See Conversion."""
        return ()

    def validate(self, name: str, order: BoxOrder, io: BoxIO) -> Validated:
        """See Conversion."""
        raise UsageError(f"no validator is called {name!r}: this conversion has none")

    def contradicted(self, stage: Stage, exits: tuple[ValidatorExit, ...]) -> Reply:
        """See Conversion."""
        red = [exit for exit in exits if exit.exit_code != 0]
        owner = OWN_PART[stage]
        return Reply(
            verdict=Verdict.FAIL if stage is Stage.D else Verdict.BLOCKED,
            owner=owner,
            fault=Fault.KERNEL if owner is Owner.KERNEL else Fault.AGENT,
            fail_class=None,
            validators=exits,
            summary="; ".join(f"{exit.name} ended with {exit.exit_code}: {exit.message}" for exit in red),
        )

    def contract(self, order: BoxOrder, io: BoxIO, records: tuple[StageRecord, ...]) -> tuple[Finding, ...]:
        """See Conversion."""
        return ()

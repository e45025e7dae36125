"""`python -m containers.box.validate NAME`: one validator of the box's conversion, or `contract`, run now.

Places come from the environment, as for `python -m containers.box`. Prints what is wrong, as
`file:line:column: message` and below it what to do, then the message as the last line. Exit 0: good, 1: bad,
2: could not be run.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from containers.box.called import called, lines
from containers.box.files import read_json
from farm.orders import BoxOrder, StageRecord
from farm.pipeline.stage import Stage
from farm.recipes import BoxIO, Conversion, Exit, Validated

USAGE = "usage: python -m containers.box.validate NAME"
CONTRACT = "contract"


def main(arguments: Sequence[str]) -> int:
    """Run it; the exit code."""
    if len(arguments) != 1:
        print(USAGE)
        return Exit.NOT_RUN
    (name,) = arguments

    def act(conversion: Conversion, order: BoxOrder, io: BoxIO) -> Validated:
        return _contract(conversion, order, io) if name == CONTRACT else conversion.validate(name, order, io)

    found = called("validator", f"validate-{'unknown' if '/' in name else name}", act)
    if found is None:
        return Exit.NOT_RUN
    for finding in found.findings:
        print("\n".join(lines(finding)))
    print(found.message)
    return found.exit


def _contract(conversion: Conversion, order: BoxOrder, io: BoxIO) -> Validated:
    """The output contract of the stages that have run so far."""
    findings = conversion.contract(order, io, _records(io.out))
    message = f"{len(findings)} things are missing or wrong" if findings else "everything that was owed is there"
    return Validated(exit=Exit.BAD if findings else Exit.GOOD, message=message, findings=findings)


def _records(out: Path) -> tuple[StageRecord, ...]:
    """The box's stage records; of each visit the last, which a repair made."""
    found: dict[tuple[Stage, int], StageRecord] = {}
    for path in sorted((out / "stages").glob("*.json"), key=lambda path: (path.stem.count("-"), path.name)):
        record = read_json(path, StageRecord)
        found[(record.stage, record.visit)] = record
    return tuple(found[key] for key in sorted(found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""`python -m containers.box.validate NAME`: one validator of the box's conversion, or `contract`, run now.

Places come from the environment, as for `python -m containers.box`. Prints what is wrong, as
`file:line:column: message` and below it what to do, then the message as the last line. Exit 0: good, 1: bad,
2: could not be run.
"""

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from containers.box.files import read_json
from containers.box.io import LocalBoxIO
from farm.errors import FarmError
from farm.orders import BoxOrder, StageRecord
from farm.pipeline.stage import Finding, Stage
from farm.recipes import BoxIO, Conversion, Exit, Validated, load, read_table

USAGE = "usage: python -m containers.box.validate NAME"
CONTRACT = "contract"


def main(arguments: Sequence[str]) -> int:
    """Run it; the exit code."""
    if len(arguments) != 1:
        print(USAGE)
        return Exit.NOT_RUN
    (name,) = arguments
    try:
        order = read_json(Path(os.environ["TILEFARM_ORDER"]), BoxOrder)
        table = (Path(os.environ["TILEFARM_RECIPE"]) / "recipe.toml").read_text(encoding="utf-8")
        conversion = load(order.conversion, read_table(table))
        out = Path(os.environ["TILEFARM_OUT"])
        io = LocalBoxIO(
            workspace=Path(os.environ["TILEFARM_WORK"]),
            out=out,
            toolchain=Path(os.environ["TILEFARM_TOOLCHAIN"]),
            log=out / "logs" / f"validate-{'unknown' if '/' in name else name}.log",
        )
        found = _contract(conversion, order, io) if name == CONTRACT else conversion.validate(name, order, io)
    except (FarmError, OSError, ValueError, KeyError) as error:
        what = f"no {error} in the environment" if isinstance(error, KeyError) else str(error)
        print(f"env: {' '.join(what.split())}")
        return Exit.NOT_RUN
    except Exception as error:  # a defect of ours must not pass for an agent's fault
        traceback.print_exc()
        sys.stderr.flush()
        print(f"env: the validator crashed: {type(error).__name__}: {' '.join(str(error).split())}")
        return Exit.NOT_RUN
    for finding in found.findings:
        print("\n".join(lines(finding)))
    print(found.message)
    return found.exit


def lines(finding: Finding) -> Iterator[str]:
    """A finding as text: place and message, the source text, what to do."""
    place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
    yield f"{place}: {finding.message}" if place else finding.message
    if finding.construct:
        yield f"    {finding.construct}"
    if finding.advice:
        yield f"  -> {finding.advice}"


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

"""`python -m containers.box.program STAGE`: a stage's own program, run now, as a tool of an agent.

It writes what the stage's program writes, and prints what it found as the validators do, then `VERDICT: sentence`
as the last line. Exit 0: the verdict is good; 1: it is not; 2: there is no such program, or it could not be run.
"""

import sys
from collections.abc import Sequence

from containers.box.called import called, lines
from farm.errors import UsageError
from farm.orders import BoxOrder
from farm.pipeline.stage import Reply, Stage
from farm.pipeline.table import GOOD
from farm.recipes import BoxIO, Conversion, Exit

USAGE = f"usage: python -m containers.box.program {'|'.join(Stage)}"


def main(arguments: Sequence[str]) -> int:
    """Run it; the exit code."""
    if len(arguments) != 1 or arguments[0] not in set(Stage):
        print(USAGE)
        return Exit.NOT_RUN
    stage = Stage(arguments[0])

    def act(conversion: Conversion, order: BoxOrder, io: BoxIO) -> Reply:
        program = conversion.program(stage)
        if program is None:
            raise UsageError(f"there is no program for stage {stage.value}")
        return program(order, io)

    reply = called("program", f"program-{stage.value}", act)
    if reply is None:
        return Exit.NOT_RUN
    for finding in reply.findings:
        print("\n".join(lines(finding)))
    owner = "" if reply.owner is None else f" {reply.owner.value}"
    print(f"{reply.verdict.value}{owner}: {' '.join(reply.summary.split())}")
    return Exit.GOOD if reply.verdict in GOOD else Exit.BAD


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""`python -m containers.box.program STAGE`: a stage's own program, run now, as a tool of an agent.

It writes what the stage's program writes, and prints what it found as the validators do, then `VERDICT: sentence`
as the last line. Exit 0: the verdict is good; 1: it is not; 2: there is no such program, or it could not be run.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from containers.box.files import read_json
from containers.box.io import LocalBoxIO
from containers.box.validate import lines
from farm.errors import FarmError
from farm.orders import BoxOrder
from farm.pipeline.stage import Stage
from farm.pipeline.table import GOOD
from farm.recipes import Exit, load, read_table

USAGE = f"usage: python -m containers.box.program {'|'.join(Stage)}"


def main(arguments: Sequence[str]) -> int:
    """Run it; the exit code."""
    if len(arguments) != 1 or arguments[0] not in set(Stage):
        print(USAGE)
        return Exit.NOT_RUN
    stage = Stage(arguments[0])
    try:
        order = read_json(Path(os.environ["TILEFARM_ORDER"]), BoxOrder)
        table = (Path(os.environ["TILEFARM_RECIPE"]) / "recipe.toml").read_text(encoding="utf-8")
        program = load(order.conversion, read_table(table)).program(stage)
        if program is None:
            print(f"env: there is no program for stage {stage.value}")
            return Exit.NOT_RUN
        out = Path(os.environ["TILEFARM_OUT"])
        io = LocalBoxIO(
            workspace=Path(os.environ["TILEFARM_WORK"]),
            out=out,
            toolchain=Path(os.environ["TILEFARM_TOOLCHAIN"]),
            log=out / "logs" / f"program-{stage.value}.log",
        )
        reply = program(order, io)
    except (FarmError, OSError, ValueError, KeyError) as error:
        what = f"no {error} in the environment" if isinstance(error, KeyError) else str(error)
        print(f"env: {' '.join(what.split())}")
        return Exit.NOT_RUN
    except Exception as error:  # a defect of ours must not pass for an agent's fault
        traceback.print_exc()
        sys.stderr.flush()
        print(f"env: the program crashed: {type(error).__name__}: {' '.join(str(error).split())}")
        return Exit.NOT_RUN
    for finding in reply.findings:
        print("\n".join(lines(finding)))
    owner = "" if reply.owner is None else f" {reply.owner.value}"
    print(f"{reply.verdict.value}{owner}: {' '.join(reply.summary.split())}")
    return Exit.GOOD if reply.verdict in GOOD else Exit.BAD


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

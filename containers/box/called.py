"""What programs share that an agent calls in its box by name: places, findings as text, errors."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from containers.box.files import read_json
from containers.box.io import LocalBoxIO
from farm.errors import FarmError
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding
from farm.recipes import BoxIO, Conversion, load, read_table

T = TypeVar("T")


def called(what: str, log: str, act: Callable[[Conversion, BoxOrder, BoxIO], T]) -> T | None:
    """What `act` gives on the box's conversion, order and folders; None, why being printed, when it could not run.

    `what` is for the sentence about a crash, `log` names the file of what it logs.
    """
    try:
        order = read_json(Path(os.environ["TILEFARM_ORDER"]), BoxOrder)
        table = (Path(os.environ["TILEFARM_RECIPE"]) / "recipe.toml").read_text(encoding="utf-8")
        conversion = load(order.conversion, read_table(table))
        out = Path(os.environ["TILEFARM_OUT"])
        io = LocalBoxIO(
            workspace=Path(os.environ["TILEFARM_WORK"]),
            out=out,
            toolchain=Path(os.environ["TILEFARM_TOOLCHAIN"]),
            log=out / "logs" / f"{log}.log",
        )
        return act(conversion, order, io)
    except (FarmError, OSError, ValueError, KeyError) as error:
        why = f"no {error} in the environment" if isinstance(error, KeyError) else str(error)
        print(f"env: {' '.join(why.split())}")
    except Exception as error:  # a defect of ours must not pass for an agent's fault
        traceback.print_exc()
        sys.stderr.flush()
        print(f"env: the {what} crashed: {type(error).__name__}: {' '.join(str(error).split())}")
    return None


def lines(finding: Finding) -> Iterator[str]:
    """A finding as text: place and message, the source text, what to do."""
    place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
    yield f"{place}: {finding.message}" if place else finding.message
    if finding.construct:
        yield f"    {finding.construct}"
    if finding.advice:
        yield f"  -> {finding.advice}"

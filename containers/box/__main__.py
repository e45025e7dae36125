"""The program of a box: `python -m containers.box` runs the pipeline, judges a patch or builds its library.

Places come from the box's own environment: TILEFARM_ORDER, TILEFARM_WORK, TILEFARM_OUT,
TILEFARM_RECIPE, TILEFARM_TOOLCHAIN. The last file it writes is the result; its exit code only says that it did.
"""

import os
from pathlib import Path

from containers.box.executors import executors
from containers.box.files import append_event, read_json, write_json
from containers.box.heartbeat import Heartbeat
from containers.box.io import LocalBoxIO
from containers.box.pipeline import run_pipeline
from farm.errors import UsageError
from farm.orders import BoxOrder, Purpose
from farm.pipeline.routes import FILE as ROUTES
from farm.pipeline.routes import read_routes
from farm.recipes import load, read_table


def main() -> None:
    """Carry out the order and write the result."""
    order = read_json(Path(os.environ["TILEFARM_ORDER"]), BoxOrder)
    workspace = Path(os.environ["TILEFARM_WORK"])
    out = Path(os.environ["TILEFARM_OUT"])
    toolchain = Path(os.environ["TILEFARM_TOOLCHAIN"])
    recipe = Path(os.environ["TILEFARM_RECIPE"])
    conversion = load(order.conversion, read_table((recipe / "recipe.toml").read_text(encoding="utf-8")))
    with Heartbeat(out / "heartbeat"):
        append_event(out, "box_started", purpose=order.purpose, job=order.job, attempt=order.attempt)
        match order.purpose:
            case Purpose.PIPELINE:
                result = run_pipeline(
                    order,
                    executors(order, conversion, recipe),
                    read_routes((recipe / ROUTES).read_text(encoding="utf-8"), order.caps),
                    conversion,
                    workspace=workspace,
                    out=out,
                    toolchain=toolchain,
                )
                append_event(out, "box_done", purpose=order.purpose)
                write_json(out / "result.json", result)
            case Purpose.GATE:
                io = LocalBoxIO(workspace=workspace, out=out, toolchain=toolchain, log=out / "logs" / "gate.log")
                report = conversion.judge(order, io)
                append_event(out, "box_done", purpose=order.purpose)
                write_json(out / "gates.json", report)
            case Purpose.BUILD:
                io = LocalBoxIO(workspace=workspace, out=out, toolchain=toolchain, log=out / "logs" / "build.log")
                built = conversion.build(order, io)
                append_event(out, "box_done", purpose=order.purpose)
                write_json(out / "build.json", built)
            case Purpose.MEASURE:
                raise UsageError("a bundle's gates are run by its own program")


if __name__ == "__main__":
    main()

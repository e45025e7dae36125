"""A run, a job and a box's order as any test may need them; keywords replace what a test is about."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from containers.toolchain import Record, Toolchain
from farm.job import Accept, Job, JobState, Run
from farm.orders import BoxOrder, Purpose
from farm.pipeline.routes import read_routes
from farm.pipeline.table import RouteTable
from farm.recipe import load_recipe

#: The shipped recipes.
RECIPES = Path(__file__).parents[1] / "config" / "recipes"

RUN = Run(
    id="r-1",
    recipe="cutile-rs",
    repo="builtin:minigym",
    push_to=None,
    base="b" * 40,
    accept=Accept.CERTIFIED,
    attempts=2,
    created_at=1_700_000_000.0,
)


def job(op: str = "relu", state: JobState = JobState.QUEUED, **changes: Any) -> Job:
    """A job of `RUN` in its first attempt."""
    made = Job(
        id=f"{RUN.id}.{op}",
        run=RUN.id,
        op=op,
        state=state,
        attempt=1,
        transients=0,
        fence=3,
        cancel_requested=False,
        parked_from=None,
        park_reason=None,
        fault=None,
        summary=None,
        commit=None,
        branch=None,
        updated_at=RUN.created_at + 100,
    )
    return made.evolve(**changes)


def order(**changes: Any) -> BoxOrder:
    """The order of a pipeline's box for the job `relu`; no stage has an executor."""
    made = BoxOrder(
        purpose=Purpose.PIPELINE,
        run=RUN.id,
        job=f"{RUN.id}.relu",
        attempt=1,
        op="relu",
        recipe="cutile-rs",
        conversion="cutile-rs",
        source="cutile",
        target="cutile-rs",
        gpu="sm_90",
        executors={},
        caps={},
        stage_limit_s=60.0,
        previous_trace=None,
    )
    return replace(made, **changes)


def shipped_routes() -> RouteTable:
    """The routes of the recipe cutile-rs, with its caps."""
    recipe = load_recipe(RECIPES / "cutile-rs")
    return read_routes((RECIPES / "cutile-rs" / "routes.toml").read_text(encoding="utf-8"), recipe.caps)


def toolchain(root: Path, **versions: str) -> Toolchain:
    """A toolchain of which nothing is there but the folder of its Python."""
    (root / "venv" / "bin").mkdir(parents=True, exist_ok=True)
    return Toolchain(root=root, record=Record(digest="d", python_key="p", versions=versions))

"""Commands about gates on a GPU machine: bundle."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from drivers.cli.context import wiring
from drivers.cli.options import DEFAULT_RECIPE, DEFAULT_REPO, AsJson, Base, RecipeName, Repo
from drivers.cli.output import emit, note
from farm.errors import UsageError
from farm.views import BundleView


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("bundle")(bundle)


def bundle(
    context: typer.Context,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write.", metavar="DIR")],
    name: Annotated[
        str | None, typer.Argument(metavar="[RUN|JOB]", help="Jobs that wait for a GPU: a run's, or one.")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Landed implementations instead: all, or op names.", metavar="OPS"),
    ] = None,
    repo: Repo = DEFAULT_REPO,
    base: Base = None,
    recipe: RecipeName = DEFAULT_RECIPE,
    as_json: AsJson = False,
) -> None:
    """Write all that the gates need on a GPU machine, and a program `run` that runs them there."""
    if (name is None) == (judge is None):
        raise UsageError("give either a run or job, or --judge OPS")
    desk, folder = wiring(context).gates(), out.absolute()
    if judge is not None:
        view = desk.bundle_landed(judge, repo=repo, base=base, recipe=recipe, folder=folder, say=note)
    else:
        view = desk.bundle_jobs(name or "", folder=folder)
    emit(view, as_json=as_json, render=lambda: _bundle_text(view))


def _bundle_text(view: BundleView) -> Text:
    lines = [f"{view.folder}: {len(view.subjects)} to judge, {view.bytes / 1e6:.1f} MB, {view.digest}"]
    for subject in view.subjects:
        lines.append(f"  {subject.id} of {subject.base[:12]}")
        lines += [f"    beyond the change set: {violation}" for violation in subject.violations]
    lines += [f"on the GPU machine: python {view.folder}/run -o RESULTS; then here: farm import RESULTS"]
    return Text("\n".join(lines))

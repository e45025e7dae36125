"""Commands about gates on a GPU machine: bundle, judge, accept, import, verify."""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from drivers.cli.context import wiring
from drivers.cli.options import DEFAULT_RECIPE, DEFAULT_REPO, AsJson, Base, RecipeName, Repo
from drivers.cli.output import emit, note
from drivers.cli.tables import import_table
from farm.errors import FarmError, UsageError
from farm.results import RESULTS
from farm.views import BundleView, VerifyView

if TYPE_CHECKING:
    from drivers.gates import GateDesk

Table = Annotated[
    Path | None, typer.Option("--table", metavar="FILE.md", help="Also write the table as Markdown.")
]
Chart = Annotated[
    Path | None, typer.Option("--chart", metavar="FILE.svg", help="Also write a bar chart of the speedups.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("bundle")(bundle)
    app.command("judge")(judge)
    app.command("accept")(accept)
    app.command("import")(import_results)
    app.command("verify")(verify)


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


def judge(
    context: typer.Context,
    ops: Annotated[str, typer.Argument(metavar="OPS", help="all, or op names with commas between.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the bundle and its results.", metavar="DIR")
    ],
    repo: Repo = DEFAULT_REPO,
    base: Base = None,
    recipe: RecipeName = DEFAULT_RECIPE,
    table: Table = None,
    chart: Chart = None,
    as_json: AsJson = False,
) -> None:
    """Put implementations that the target repo holds through the gates; nothing is converted and nothing lands.

    Without a GPU here it ends with 3, and DIR/bundle is what to take to one.
    """
    desk, folder = wiring(context).gates(), out.absolute()
    view = desk.bundle_landed(ops, repo=repo, base=base, recipe=recipe, folder=folder / "bundle", say=note)
    note(_bundle_text(view).plain)
    if not glob.glob("/dev/nvidia[0-9]*"):
        if as_json:
            emit(view, as_json=True, render=lambda: Text(""))
        note("there is no GPU here; take the bundle to one, as the last line says")
        raise typer.Exit(3)
    _accept(desk, folder / "bundle", folder / "results", (), (table, chart), as_json=as_json)


def accept(
    context: typer.Context,
    bundle: Annotated[Path, typer.Argument(metavar="DIR", help="A bundle.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTIONS]", help="Options of the bundle's program `run`.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="RESULTS", show_default="DIR-results")] = None,
    table: Table = None,
    chart: Chart = None,
    as_json: AsJson = False,
) -> None:
    """Run a bundle's gates on this machine and import what they recorded."""
    folder = bundle.absolute()
    results = folder.with_name(f"{folder.name}-results") if out is None else out.absolute()
    _accept(wiring(context).gates(), folder, results, words or (), (table, chart), as_json=as_json)


def import_results(
    context: typer.Context,
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="Results folders, or such folders packed.")
    ],
    bundles: Annotated[
        list[Path] | None,
        typer.Option("--bundle", metavar="DIR", help="The bundle, where another farm wrote it; may be repeated."),
    ] = None,
    table: Table = None,
    chart: Chart = None,
    as_json: AsJson = False,
) -> None:
    """Check results of GPU machines, rule on them from their raw records, and let their jobs go on here.

    Ends with 0 when all passed and landed, 4 when something failed, 3 while something is open.
    """
    _import(wiring(context).gates(), results, bundles or (), (table, chart), as_json=as_json)


def verify(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="COMMIT|EVIDENCE", help="A landed commit or branch; a folder.")],
    repo: Repo = DEFAULT_REPO,
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="DIR", help="The commit's evidence.", show_default="the store's"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Also write the commit's evidence here.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Also run the gates again on this machine's GPU, and compare.")
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="DIR", help="What to replay.", show_default="written from the commit"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Repeat the decision behind a commit from its evidence. Ends with 4 unless it is proven.

    With --replay it also ends with 4 when the gates rule otherwise now or the speeds' intervals lie apart.
    """
    desk = wiring(context).gates()
    view, files = desk.verify(what, repo=repo, evidence=evidence, out=out)
    if replay and view.proven:
        given = None if bundle is None else bundle.absolute()
        view = desk.replay(view, files, repo=repo, bundle=given, say=note)
    emit(view, as_json=as_json, render=lambda: _verify_text(view))
    if not view.proven or (view.replay is not None and not view.replay.agrees):
        raise typer.Exit(4)


def _verify_text(view: VerifyView) -> Text:
    lines = [f"{view.what}: {'proven' if view.proven else 'not proven'}; {view.decision}"]
    lines += [f"  {gate.gate.value} {gate.ruling.value}: {gate.summary}" for gate in view.gates]
    lines += [f"  {problem}" for problem in view.problems]
    again = view.replay
    if again is not None:
        speed = (
            "" if again.ratio is None else f", {again.ratio:.3f} [{again.low or 0.0:.3f}, {again.high or 0.0:.3f}]"
        )
        lines.append(f"replay on {again.gpu}: {'agrees' if again.agrees else 'differs'}{speed}; {again.results}")
        lines += [f"  {sentence}" for sentence in (*again.differences, *again.notes)]
    return Text("\n".join(lines))


def _accept(
    desk: "GateDesk",
    bundle: Path,
    results: Path,
    words: Sequence[str],
    files: tuple[Path | None, Path | None],
    *,
    as_json: bool,
) -> None:
    if desk.run(bundle, results, words) != 0 and not (results / RESULTS).is_file():
        raise FarmError(f"the gates of {bundle} could not be run; see above")
    _import(desk, [results], [bundle], files, as_json=as_json)


def _import(
    desk: "GateDesk",
    results: Sequence[Path],
    bundles: Sequence[Path],
    files: tuple[Path | None, Path | None],
    *,
    as_json: bool,
) -> None:
    view, measured = desk.take([path.absolute() for path in results], [path.absolute() for path in bundles])
    for path, text in zip(files, desk.pictures(measured), strict=True):
        if path is not None:
            path.write_text(text, encoding="utf-8")
    emit(view, as_json=as_json, render=lambda: import_table(view))
    raise typer.Exit(view.exit_code)


def _bundle_text(view: BundleView) -> Text:
    lines = [f"{view.folder}: {len(view.subjects)} to judge, {view.bytes / 1e6:.1f} MB, {view.digest}"]
    for subject in view.subjects:
        lines.append(f"  {subject.id} of {subject.base[:12]}")
        lines += [f"    beyond the change set: {violation}" for violation in subject.violations]
    lines += [f"on the GPU machine: python {view.folder}/run -o RESULTS; then here: farm import RESULTS"]
    return Text("\n".join(lines))

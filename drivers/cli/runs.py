"""Commands about runs: ops, submit, status, cancel, retry, report, one-shot."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from drivers.cli.context import Wiring, wiring
from drivers.cli.options import (
    DEFAULT_RECIPE,
    DEFAULT_REPO,
    AcceptBy,
    AsJson,
    Attempts,
    Base,
    Budget,
    Executors,
    PushTo,
    RecipeName,
    Repo,
)
from drivers.cli.output import emit, note
from drivers.cli.tables import ops_table, run_table, status_table
from drivers.cli.watch import LiveTable, PlainLines, Progress, Vigil, wait_until_settled
from drivers.one_shot import run_here
from drivers.requests import SubmitRequest, look_command
from farm.job import Accept, JobState, Run
from farm.views import RunView

POLL_S = 0.5


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("ops")(ops)
    app.command("submit")(submit)
    app.command("status")(status)
    app.command("cancel")(cancel)
    app.command("retry")(retry)
    app.command("report")(report)
    app.command("one-shot")(one_shot)


def ops(
    context: typer.Context,
    repo: Repo = DEFAULT_REPO,
    base: Base = None,
    recipe: RecipeName = DEFAULT_RECIPE,
    as_json: AsJson = False,
) -> None:
    """List the target repo's ops, kernels, test rows and landed implementations, by reading its syntax."""
    view = wiring(context).service().ops(repo=repo, base=base, recipe=recipe)
    emit(view, as_json=as_json, render=lambda: ops_table(view))


def submit(
    context: typer.Context,
    ops: Annotated[str, typer.Option("--ops", help="all, missing, or names with commas between them.")],
    repo: Repo = DEFAULT_REPO,
    base: Base = None,
    recipe: RecipeName = DEFAULT_RECIPE,
    attempts: Attempts = None,
    accept: AcceptBy = Accept.MEASURED,
    push_to: PushTo = None,
    executors: Executors = None,
    budget: Budget = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until nothing moves any more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Enqueue one job an op. Without --wait it ends with 0 as soon as the jobs are stored."""
    wires = wiring(context)
    service = wires.service()
    run = service.submit(
        SubmitRequest(
            ops=ops,
            repo=repo,
            base=base,
            recipe=recipe,
            attempts=attempts,
            accept=accept,
            push_to=push_to,
            executors=executors,
            budget=budget,
        )
    )
    if wait:
        _wait(wires, run, as_json=as_json)
        return
    view = service.run(run)
    watch = Text(f"watch it: farm status {run.id} --wait")
    emit(view, as_json=as_json, render=lambda: Group(run_table(view), watch))


def status(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Run id; without it, the latest runs.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until nothing moves any more.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most runs to list.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the latest runs, or one run's jobs. Ends with 0; with --wait as `submit --wait` does."""
    wires = wiring(context)
    read = wires.service().read
    if wait:
        _wait(wires, read.find_run(run), as_json=as_json)
    elif run is None:
        view = read.status(limit=limit)
        emit(view, as_json=as_json, render=lambda: status_table(view))
    else:
        one = read.run_view(read.find_run(run))
        emit(one, as_json=as_json, render=lambda: run_table(one))


def cancel(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="RUN|JOB", help="Run id or job id.")],
    as_json: AsJson = False,
) -> None:
    """Cancel a run or a job. It holds even while no worker is running."""
    view = wiring(context).service().cancel(name)
    when = "at the next `farm up`, for the farm is stopped" if view.needs_up else "at its next step"
    lines = [f"{job} is cancelled" if job in view.ended else f"{job} is cancelled {when}" for job in view.jobs]
    emit(view, as_json=as_json, render=lambda: Text("\n".join(lines) or "nothing is under way"))


def retry(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Job id, or an op: its newest job.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until nothing moves any more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Convert the op of a failed or cancelled job once more, in a new run."""
    wires = wiring(context)
    service = wires.service()
    run = service.retry(service.read.find_job(job))
    if wait:
        _wait(wires, run, as_json=as_json)
        return
    view = service.run(run)
    emit(view, as_json=as_json, render=lambda: run_table(view))


def report(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Run id; without it, the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the run's report as HTML, Markdown and JSON, and say where."""
    service = wiring(context).service()
    view = service.report(service.read.find_run(run))
    emit(view, as_json=as_json, render=lambda: Text(f"{view.html}\n{view.markdown}\n{view.json}"))


def one_shot(
    context: typer.Context,
    op: Annotated[str, typer.Argument(metavar="OP", help="The op to convert.")],
    repo: Repo = DEFAULT_REPO,
    base: Base = None,
    recipe: RecipeName = DEFAULT_RECIPE,
    attempts: Attempts = None,
    accept: AcceptBy = Accept.MEASURED,
    push_to: PushTo = None,
    executors: Executors = None,
    as_json: AsJson = False,
) -> None:
    """Convert one op in this process: the same steps, without Redis or workers."""
    wires = wiring(context)
    service = wires.service(embedded=False)
    run = service.submit(
        SubmitRequest(
            ops=op,
            repo=repo,
            base=base,
            recipe=recipe,
            attempts=attempts,
            accept=accept,
            push_to=push_to,
            executors=executors,
        )
    )
    advance = wires.advance()

    def between() -> None:
        wires.pause(run_here(service.read.jobs(run), advance))

    _wait(wires, run, as_json=as_json, between=between)


def _wait(wires: Wiring, run: Run, *, as_json: bool, between: Callable[[], None] | None = None) -> None:
    """Show progress until the run is settled, write its report, print the outcome, end with its exit code.

    `between` does the run's work between two looks, where no worker does.
    """
    service = wires.service(embedded=False)
    try:
        view = wait_until_settled(
            lambda: service.run(run),
            _progress(wires, as_json=as_json),
            between or Vigil(pause=lambda: wires.pause(POLL_S), stopped=wires.stopped, say=note),
        )
    except KeyboardInterrupt:
        view = service.run(run)
        goes_on = f"the run goes on; watch it: farm status {run.id} --wait"
        rests = "the run rests where it is; `farm up` goes on with it"
        note(f"{goes_on if between is None else rests}; end it: farm cancel {run.id}")
        raise typer.Exit(view.exit_code) from None
    service.report(run)
    view = service.run(run)
    emit(view, as_json=as_json, render=lambda: _outcome(wires, view))
    raise typer.Exit(view.exit_code)


def _progress(wires: Wiring, *, as_json: bool) -> Progress:
    if sys.stdout.isatty() and not as_json:
        return LiveTable(Console())
    return PlainLines(note if as_json else lambda text: typer.echo(text), wires.clock)


def _outcome(wires: Wiring, view: RunView) -> RenderableType:
    lines = []
    target = wires.target_path(view.push_to or view.repo)
    landed = [job for job in view.jobs if job.state is JobState.ACCEPTED and job.branch]
    if landed:
        lines += ["", "commits to look at:"]
        lines += [f"  {look_command(target, job.branch)}" for job in landed if job.branch]
    others = [job for job in view.jobs if job.state is not JobState.ACCEPTED]
    if others:
        lines += ["", "why not the others:"]
        lines += [f"  farm diagnose {job.id}" for job in others]
    lines += ["", f"report: {view.report}"]
    return Group(run_table(view), Text("\n".join(lines)))

"""Commands about one job: show, logs, diagnose."""

from typing import Annotated

import typer
from rich.text import Text

from drivers.cli.context import Wiring, wiring
from drivers.cli.options import AsJson, JobName
from drivers.cli.output import emit
from drivers.cli.tables import job_text
from farm.job import FINAL, WAITING, Job, JobState

POLL_S = 0.5


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("show")(show)
    app.command("logs")(logs)
    app.command("diagnose")(diagnose)


def show(context: typer.Context, job: JobName, as_json: AsJson = False) -> None:
    """Show one job: state, gates, proof, history, kept files."""
    read = wiring(context).service(embedded=False).read
    view = read.detail(read.find_job(job))
    emit(view, as_json=as_json, render=lambda: job_text(view))


def logs(
    context: typer.Context,
    job: JobName,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the job rests.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a job's history and the logs of its boxes, of a running one as far as it has come."""
    wires = wiring(context)
    read = wires.service(embedded=False).read
    found = read.find_job(job)
    if follow and not as_json:
        _follow(wires, found)
        return
    view = read.logs(found)
    emit(view, as_json=as_json, render=lambda: Text(view.text))


def diagnose(context: typer.Context, job: JobName, as_json: AsJson = False) -> None:
    """Say why a job is not accepted: where, whose fault, evidence, next step, how to reproduce."""
    read = wiring(context).service(embedded=False).read
    found = read.find_job(job)
    view = read.diagnosis(found)
    if view.trace is None:
        text = f"{found.id} is accepted: {found.commit} on {found.branch}"
        emit(view, as_json=as_json, render=lambda: Text(text))
        return
    from farm.report.render import trace_markdown

    body = trace_markdown(view.trace)
    emit(view, as_json=as_json, render=lambda: Text(body.rstrip()))


def _follow(wires: Wiring, job: Job) -> None:
    from drivers.reading import event_line, event_view

    read = wires.service(embedded=False).read
    after = 0
    seen: dict[str, int] = {}
    box = (0, 0)
    try:
        while True:
            now = read.find_job(job.id)
            if now.state is JobState.RUNNING and box != (now.attempt, now.transients):
                box, seen = (now.attempt, now.transients), {}
            for logged in read.events(job, after=after):
                typer.echo(event_line(event_view(logged)))
                after = logged.seq
            for line in read.follow(now, seen):
                typer.echo(line)
            if now.state in FINAL | WAITING:
                return
            wires.pause(POLL_S)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None

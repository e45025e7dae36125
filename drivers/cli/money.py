"""Commands about model calls: usage, budget, transcript."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from drivers.cli.context import wiring
from drivers.cli.options import AsJson, JobName
from drivers.cli.output import emit
from drivers.cli.tables import usage_table, when
from farm.pipeline.stage import Stage
from farm.views import TalkView, TranscriptView


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("usage")(usage)
    app.command("budget")(budget)
    app.command("transcript")(transcript)


def usage(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Run id; without it, all runs.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what model calls used and cost: by op and agent, by class of tokens, and for each accepted op."""
    read = wiring(context).service(embedded=False).read
    view = read.usage(None if run is None else read.find_run(run))
    emit(view, as_json=as_json, render=lambda: usage_table(view))


def budget(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run id.")],
    usd: Annotated[str, typer.Argument(metavar="USD", help="Most that all its model calls may cost, US dollars.")],
    as_json: AsJson = False,
) -> None:
    """Give a run another budget; jobs that are parked for it go on when it is enough."""
    service = wiring(context).service()
    view = service.budget(service.read.find_run(run), usd)
    lines = [f"{job} is looked at again" for job in view.jobs] or ["no job waits for it"]
    if view.jobs and view.needs_up:
        lines.append("the farm is stopped: `farm up` goes on with them")
    emit(view, as_json=as_json, render=lambda: Text("\n".join(lines)))


def transcript(
    context: typer.Context,
    job: JobName,
    agent: Annotated[
        Stage | None, typer.Option("--agent", help="Only the agent of this stage.", show_default="all")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a job's agents and the model said to each other. Secrets are left out."""
    read = wiring(context).service(embedded=False).read
    view = read.transcript(read.find_job(job), None if agent is None else agent.value)
    emit(view, as_json=as_json, render=lambda: _transcript_text(view))


def _transcript_text(view: TranscriptView) -> RenderableType:
    if not view.calls:
        return Text(f"no model was asked for {view.job}")
    return Group(*[part for call in view.calls for part in _call_text(call)])


def _call_text(call: TalkView) -> list[Text]:
    from farm.models import dollars  # loads pydantic, which most commands do without

    repair = " (repair)" if call.repair else ""
    visit = f"attempt {call.attempt}, stage {call.stage}, visit {call.visit}{repair}"
    head = f"== {visit}, call {call.step}: {call.model}"
    end = [call.outcome, *([call.stop_reason] if call.stop_reason else []), dollars(call.micro_usd)]
    lines = [Text(head, style="bold")]
    lines += [Text(f"-- try that failed: {why}", style="yellow") for why in call.tries]
    for said in call.said:
        kind = "" if said.kind == "text" else f" {said.kind}"
        lines += [Text(f"[{said.who}{kind}]", style="cyan"), Text(said.text)]
    lines.append(Text(f"-- {when(call.at)} {', '.join(end)}" + (f": {call.why}" if call.why else ""), style="dim"))
    return lines

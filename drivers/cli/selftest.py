"""Commands by which the farm tries itself: selftest attacks, selftest scenarios."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from drivers.cli.context import wiring
from drivers.cli.options import AsJson
from drivers.cli.output import emit, note
from farm.views import AttacksView, AttackView, ScenariosView, ScenarioView

if TYPE_CHECKING:
    from drivers.attacks.model import Outcome
    from drivers.scenarios.runner import Outcome as Played


def register(app: typer.Typer) -> None:
    """Add the group."""
    selftest = typer.Typer(help="Have the farm try itself.", no_args_is_help=True)
    selftest.command("attacks")(attacks)
    selftest.command("scenarios")(scenarios)
    app.add_typer(selftest, name="selftest")


def attacks(
    context: typer.Context,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="An attack; may be given again.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Candidates at a time.", show_default="processors + 1")
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Start an interpreter for each process; takes several times as long.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put cheats and their honest twins through the gates, without a GPU. Ends with 1 if one gets past."""
    from drivers.attacks.trial import chosen, run_candidates, run_on_paper

    began = time.monotonic()
    candidates, on_paper = chosen(only or ())
    outcomes = list(run_on_paper(on_paper))
    for outcome in outcomes:
        note(outcome.line)
    if candidates:
        python = wiring(context).torch_python()
        at_once = jobs or (os.cpu_count() or 1) + 1
        outcomes += run_candidates(candidates, python=python, say=note, jobs=at_once, cold=cold)
    view = AttacksView(
        attacks=tuple(_view(outcome) for outcome in outcomes),
        refused=sum(outcome.refused for outcome in outcomes),
        honest_accepted=sum(outcome.twin.accepted for outcome in outcomes),
        total=len(outcomes),
        seconds=round(time.monotonic() - began, 1),
    )
    emit(view, as_json=as_json, render=lambda: _text(view))
    if not view.whole:
        raise typer.Exit(1)


def scenarios(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="A scenario; may be given again.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Those that take a minute at most each.")] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="FOLDER", help="Leave each scenario's state there.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FILE", help="Write the figures as Markdown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play what a model would say to a real farm, without a key. Ends with 1 if one comes to something else."""
    from drivers.scenarios.figures import compared, markdown
    from drivers.scenarios.play import chosen
    from drivers.scenarios.runner import run_all
    from farm.settings import inherited

    began = time.monotonic()
    played = run_all(chosen(tuple(only or ()), quick=quick), inherited(), say=note, keep=keep)
    if figures is not None:
        figures.write_text(markdown(played, compared(played)), encoding="utf-8")
    view = ScenariosView(
        scenarios=tuple(_played(outcome) for outcome in played),
        as_expected=sum(not outcome.problems for outcome in played),
        total=len(played),
        seconds=round(time.monotonic() - began, 1),
    )
    emit(view, as_json=as_json, render=lambda: Text(f"{view.as_expected} of {view.total}"))
    if view.as_expected != view.total:
        raise typer.Exit(1)


def _played(outcome: "Played") -> ScenarioView:
    from drivers.scenarios.seen import total

    seen = outcome.seen
    tokens = total(seen.usage)
    return ScenarioView(
        name=outcome.play.name,
        what=outcome.play.what,
        jobs=len(seen.jobs),
        stages=seen.jobs[0].stages if seen.jobs else (),
        requests=len(seen.calls),
        answers=sum(row.whole for row in seen.usage),
        micro_usd=tokens.pop("micro_usd"),
        tokens=tokens,
        transitions=sum(job.transitions for job in seen.jobs),
        seconds=round(seen.seconds, 1),
        problems=outcome.problems,
    )


def _view(outcome: "Outcome") -> AttackView:
    found = outcome.refusal
    refusals = "; ".join(f"{refusal.where.value}: {refusal.reason}" for refusal in outcome.twin.refusals)
    return AttackView(
        name=outcome.name,
        what=outcome.what,
        place=outcome.place,
        refused=outcome.refused,
        refused_by=None if found is None else found.where.value,
        reason=None if found is None else found.reason,
        honest_accepted=outcome.twin.accepted,
        honest_reason=refusals or None,
        seconds=round(outcome.cheat.seconds + outcome.twin.seconds, 1),
    )


def _text(view: AttacksView) -> Text:
    """What got past, then the one line that counts."""
    lines = [f"got past: {attack.name}: {attack.what}" for attack in view.attacks if not attack.refused]
    lines += [
        f"refused though honest: the twin of {attack.name}"
        for attack in view.attacks
        if not attack.honest_accepted
    ]
    counts = f"{view.refused} of {view.total} refused, {view.honest_accepted} of {view.total} honest accepted"
    return Text("\n".join([*lines, counts]))

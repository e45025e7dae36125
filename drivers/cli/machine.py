"""Commands about this machine: doctor, recipe, toolchain, up, down, worker, gateway."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from drivers.cli.context import wiring
from drivers.cli.options import AsJson
from drivers.cli.output import emit, note
from drivers.cli.tables import doctor_table
from farm.errors import ConfigurationError
from farm.views import RecipeChecksView, ServiceView, ToolchainView

#: Most names in one line.
NAMED = 10


def register(app: typer.Typer) -> None:
    """Add the commands and groups."""
    app.command("doctor")(doctor)
    app.command("up")(up)
    app.command("down")(down)
    app.command("worker")(worker)
    app.command("gateway")(gateway)
    recipe = typer.Typer(help="Look at recipes.", no_args_is_help=True)
    recipe.command("check")(recipe_check)
    app.add_typer(recipe, name="recipe")
    toolchain = typer.Typer(help="The conversion toolchain of this user.", no_args_is_help=True)
    toolchain.command("install")(toolchain_install)
    toolchain.command("status")(toolchain_status)
    app.add_typer(toolchain, name="toolchain")


def doctor(
    context: typer.Context,
    model: Annotated[
        bool, typer.Option("--model", help="Also ask the model something tiny; starts the embedded farm.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check whether this machine can run jobs. Ends with 1 when it cannot."""
    view = wiring(context).doctor()
    if model:
        asked = wiring(context).probe()
        view = replace(view, checks=(*view.checks, asked), healthy=view.healthy and asked.level != "error")
    emit(view, as_json=as_json, render=lambda: doctor_table(view))
    if not view.healthy:
        raise typer.Exit(1)


def up(context: typer.Context, as_json: AsJson = False) -> None:
    """Start the embedded farm of the state folder: Redis and a worker that outlive this command."""
    view = wiring(context).host().up()
    emit(view, as_json=as_json, render=lambda: _service_text(view))


def down(context: typer.Context, as_json: AsJson = False) -> None:
    """Stop the embedded farm. Jobs stay where they are and go on after the next start."""
    view = wiring(context).host().down()
    emit(view, as_json=as_json, render=lambda: Text("\n".join((_service_text(view).plain, *_left(view)))))


def worker(context: typer.Context) -> None:
    """Be a worker in the foreground, with the ledger and broker of the settings, until stopped."""
    raise typer.Exit(wiring(context).host().work())


def gateway(context: typer.Context) -> None:
    """Be the relay to the model API in the foreground, with the key of this environment, until stopped."""
    raise typer.Exit(wiring(context).host().relay())


def recipe_check(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|PATH]", help="Without it, every recipe is checked.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List all mistakes of a recipe at once. Ends with 2 when there is one."""
    view = RecipeChecksView(recipes=wiring(context).service(embedded=False).check_recipe(name))
    lines = [
        problem if problem.startswith(check.recipe) else f"{check.recipe}: {problem}"
        for check in view.recipes
        for problem in check.problems or ("no mistakes",)
    ]
    emit(view, as_json=as_json, render=lambda: Text("\n".join(lines)))
    if any(check.problems for check in view.recipes):
        raise typer.Exit(ConfigurationError.exit_code)


def toolchain_install(context: typer.Context, as_json: AsJson = False) -> None:
    """Install what is missing of the toolchain; nothing happens when it is complete."""
    view = wiring(context).toolchain().install(note)
    emit(view, as_json=as_json, render=lambda: _toolchain_text(view))


def toolchain_status(context: typer.Context, as_json: AsJson = False) -> None:
    """Say where the toolchain lies and what it is made of."""
    view = wiring(context).toolchain().status()
    emit(view, as_json=as_json, render=lambda: _toolchain_text(view))


def _service_text(view: ServiceView) -> Text:
    state = "runs" if view.running else "is stopped"
    tasks = f", {view.workers} tasks at a time" if view.running else ""
    return Text(f"the farm of {view.state_folder} {state}{tasks}" + (", with a gateway" if view.gateway else ""))


def _left(view: ServiceView) -> Iterator[str]:
    """What `down` leaves behind, and what goes on with it."""
    if view.jobs_left:
        yield f"{_number(len(view.jobs_left), 'job')} at rest: {_names(view.jobs_left)}"
    if view.boxes_left:
        yield f"{_number(len(view.boxes_left), 'box')} still running: {_names(view.boxes_left)}"
    if view.jobs_left or view.boxes_left:
        yield "`farm up` goes on with them; `farm cancel RUN|JOB` ends them then"


def _number(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}{'es' if what.endswith('x') else 's'}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _toolchain_text(view: ToolchainView) -> Group:
    if not view.installed:
        return Group(Text(f"no toolchain at {view.path}; `farm toolchain install` makes it"))
    versions = [f"  {name} {version}" for name, version in view.versions.items()]
    return Group(Text("\n".join([view.path, *versions])))

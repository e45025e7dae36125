"""The `farm` command: its groups, its options that every command has, and how errors become exit codes."""

import traceback
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from drivers.cli import gates, ir, jobs, machine, money, runs, selftest
from drivers.cli.context import Wiring
from drivers.cli.output import note, print_error
from farm.errors import Defect, FarmError, UsageError


class FarmGroup(TyperGroup):
    """A group whose commands end with the exit code of the FarmError that they raise."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what the error's form depends on before commands are told apart."""
        ctx.meta["farm.json"] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; one clear message instead of a traceback."""
        as_json, debug = ctx.meta["farm.json"], bool(ctx.params.get("debug"))
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except TyperException as error:
            if not as_json:
                raise
            _end(UsageError(error.format_message()), as_json=as_json, debug=debug)
        except FarmError as error:
            _end(error, as_json=as_json, debug=debug)
        except BrokenPipeError:
            raise typer.Exit(0) from None
        except Exception as error:
            advice = (Defect.__doc__ or "").partition("; ")[2]
            _end(Defect(f"{type(error).__name__}: {error}; {advice}"), as_json=as_json, debug=debug)


def _end(error: FarmError, *, as_json: bool, debug: bool) -> NoReturn:
    if debug:
        note(traceback.format_exc())
    print_error(error, as_json=as_json)
    raise typer.Exit(error.exit_code) from error


def build_app(wiring: Wiring) -> typer.Typer:
    """The whole command, working with `wiring`."""
    app = typer.Typer(
        name="farm",
        cls=FarmGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def begin(
        context: typer.Context,
        debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
        show_version: Annotated[
            bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_version)
        ] = False,
    ) -> None:
        """Convert GPU operators between languages and commit only what is proven.

        Exit codes: 0 all accepted; 3 nothing failed but some wait; 4 some failed or were cancelled; 2 usage or
        configuration; 1 infrastructure.
        """
        context.obj = wiring

    runs.register(app)
    jobs.register(app)
    machine.register(app)
    ir.register(app)
    gates.register(app)
    money.register(app)
    selftest.register(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        try:
            typer.echo(f"farm {version('tilefarm')}")
        except PackageNotFoundError:
            typer.echo("farm, from a checkout that is not installed")
        raise typer.Exit(0)

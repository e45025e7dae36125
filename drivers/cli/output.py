"""What a command prints: one JSON document or a rendering of it on stdout, messages on stderr."""

import json
import sys
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console, RenderableType

from farm import codec
from farm.errors import FarmError
from farm.views import ErrorView

#: Width of tables that are not printed to a terminal.
PIPE_COLUMNS = 240


def emit(document: Any, *, as_json: bool, render: Callable[[], RenderableType]) -> None:
    """Print a document of `farm.views` in the asked form."""
    if as_json:
        typer.echo(json.dumps(codec.encode(document), indent=2))
    else:
        # In a pipe a row stays a line: what reads it there is a program or a log.
        width = None if sys.stdout.isatty() else PIPE_COLUMNS
        Console(width=width, soft_wrap=width is not None).print(render())


def note(text: str) -> None:
    """A message to the person, on stderr."""
    typer.echo(text, err=True)


def print_error(error: FarmError, *, as_json: bool) -> None:
    """The error: as the document `error` on stdout with --json, and in words on stderr."""
    if as_json:
        view = ErrorView(error=type(error).__name__, message=str(error), exit_code=error.exit_code)
        typer.echo(json.dumps(codec.encode(view), indent=2))
    note(f"error: {error}")

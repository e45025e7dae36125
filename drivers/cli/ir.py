"""`farm ir`: read and compare Tile IR texts, as `tileirdisasm` prints them. Other commands do not load this."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm import codec
from farm.errors import TileIRError, UsageError

if TYPE_CHECKING:
    from farm.tileir import Comparison
    from farm.tileir.model import Module
    from farm.tileir.report import DiffView, ShowView

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
_Gpu = Annotated[
    str | None,
    typer.Option("--gpu", help="Target whose hints count, e.g. sm_90, else all named ones."),
]


def register(app: typer.Typer) -> None:
    """Mount the group `ir`."""
    app.add_typer(build_group(), name="ir")


def build_group() -> typer.Typer:
    """The commands `diff` and `show`; unreadable input raises a UsageError, whose exit code is 2."""
    group = typer.Typer(no_args_is_help=True, help="Read and compare Tile IR texts.")

    @group.command()
    def diff(
        reference: Annotated[Path, typer.Argument(help="Tile IR text of the source backend.")],
        candidate: Annotated[Path, typer.Argument(help="Tile IR text of the target backend.")],
        gpu: _Gpu = None,
        as_json: _Json = False,
    ) -> None:
        """Say whether two kernels do, may do and promise the same: exit 0 same, 1 different, 2 unreadable."""
        from farm.tileir import compare
        from farm.tileir.report import diff_view

        comparison = compare(_read(reference), _read(candidate), gpu=gpu)
        view = diff_view(str(reference), str(candidate), comparison)
        _emit(view, render_diff(view), as_json)
        raise typer.Exit(0 if comparison.same else 1)

    @group.command()
    def show(
        file: Annotated[Path, typer.Argument(help="Tile IR text.")],
        as_json: _Json = False,
    ) -> None:
        """Print a Tile IR text in the canonical form, each operation with the source line it came from."""
        from farm.tileir import print_module
        from farm.tileir.report import show_view

        module = _read(file)
        view = show_view(str(file), module, print_module(module))
        _emit(view, view.text.rstrip("\n"), as_json)

    return group


def render_diff(view: "DiffView") -> str:
    """A comparison in words."""
    lines = [_verdict(view.comparison, view.assumes_values)]
    if view.comparison.difference is not None:
        lines.append(str(view.comparison.difference))
    else:
        lines += [f"  {rule.id}: {rule.why}" for rule in view.rules]
    pairs = enumerate(view.comparison.parameters)
    lines.append("parameters: " + (", ".join(f"{at} -> {_index(to)}" for at, to in pairs) or "none"))
    return "\n".join(lines)


def _verdict(comparison: "Comparison", assumes_values: bool) -> str:
    if not comparison.same:
        return "different"
    if not comparison.rules:
        return "identical"
    return "same, by facts about index values" if assumes_values else "same"


def _index(to: int | None) -> str:
    return "unused" if to is None else str(to)


def _read(path: Path) -> "Module":
    from farm.tileir import parse

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}); give a Tile IR text, as tileirdisasm prints it"
        ) from None
    try:
        return parse(text)
    except TileIRError as error:
        raise error.at(str(path)) from None


def _emit(view: "DiffView | ShowView", text: str, as_json: bool) -> None:
    typer.echo(json.dumps(codec.encode(view), indent=2) if as_json else text)

"""What the commands about Tile IR print as JSON."""

from dataclasses import dataclass
from typing import Literal

from farm.tileir.compare import Comparison
from farm.tileir.model import Module
from farm.tileir.rules import RULES, Rule, RuleId


@dataclass(frozen=True, kw_only=True)
class DiffView:
    """The document of `farm ir diff`."""

    reference: str  #: path as given
    candidate: str  #: path as given
    comparison: Comparison
    rules: tuple[Rule, ...]  #: the rules used, with their reasons
    assumes_values: bool  #: whether a rule needs facts about index values that the IR does not state
    kind: Literal["ir_diff"] = "ir_diff"
    schema: int = 1


@dataclass(frozen=True, kw_only=True)
class EntryView:
    """An entry of a Tile IR file."""

    symbol: str
    parameters: tuple[str, ...]  #: types in order
    parameter_bytes: tuple[int | None, ...]  #: size of each, bytes
    hints: str | None  #: text of its optimisation hints
    operations: int  #: written in its body, inner bodies included


@dataclass(frozen=True, kw_only=True)
class ShowView:
    """The document of `farm ir show`."""

    file: str  #: path as given
    entries: tuple[EntryView, ...]
    text: str  #: the module as this program prints it
    kind: Literal["ir_show"] = "ir_show"
    schema: int = 1


def diff_view(reference: str, candidate: str, comparison: Comparison) -> DiffView:
    """The document about a comparison of two files."""
    return DiffView(
        reference=reference,
        candidate=candidate,
        comparison=comparison,
        rules=tuple(RULES[RuleId(rule)] for rule in comparison.rules),
        assumes_values=comparison.assumes_values,
    )


def show_view(file: str, module: Module, text: str) -> ShowView:
    """The document about a file."""
    return ShowView(
        file=file, entries=tuple(_entry_view(module, at) for at in range(len(module.entries))), text=text
    )


def _entry_view(module: Module, at: int) -> EntryView:
    entry = module.entries[at]
    operations = 0
    regions = [entry.body]
    while regions:
        ops = regions.pop().ops
        operations += len(ops)
        regions += [region for op in ops for region in op.regions]
    return EntryView(
        symbol=entry.symbol,
        parameters=tuple(param.type.text for param in entry.params),
        parameter_bytes=tuple(param.type.bytes for param in entry.params),
        hints=entry.hints,
        operations=operations,
    )

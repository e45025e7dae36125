"""How the translator says that it cannot go on: a refusal with its place, or a wish to split an entry."""

import ast
from dataclasses import dataclass

from farm.fault import Fault
from farm.pipeline.stage import Finding


class Refusal(Exception):
    """A construct that cannot be translated; becomes a Finding at the translator's door."""

    def __init__(self, node: ast.AST, message: str, advice: str, fault: Fault = Fault.UNSUPPORTED) -> None:
        super().__init__(message)
        self.node = node
        self.message = message
        self.advice = advice
        self.fault = fault
        self.path: str | None = None  #: file of `node`, when it is not the kernel's own

    def finding(self, path: str, text: str) -> Finding:
        """The refusal as a Finding in the file `path` with the content `text`."""
        line = getattr(self.node, "lineno", None)
        column = getattr(self.node, "col_offset", None)
        construct = ast.get_source_segment(text, self.node) if line is not None else None
        return Finding(
            file=path,
            line=line,
            column=None if column is None else column + 1,
            construct=None if construct is None else _clip(construct),
            message=self.message,
            advice=self.advice,
        )


class Split(Exception):
    """The lanes of an entry disagree on something that has to be decided before it is written."""

    def __init__(self, node: ast.AST, outcomes: tuple[str, ...]) -> None:
        super().__init__(f"lanes disagree: {sorted(set(outcomes))}")
        self.node = node
        self.outcomes = outcomes  #: per lane: a condition in source terms that holds for it


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What the target's crate cannot say."""

    what: str

    def refuse(self, node: ast.AST, advice: str) -> Refusal:
        """The refusal for it."""
        return Refusal(node, f"cutile 0.2.0 cannot say {self.what}", advice, Fault.DSL_LIMIT)


def _clip(text: str, width: int = 100) -> str:
    first = text.splitlines()[0] if text else text
    return first if len(first) <= width and first == text else first[:width] + " .."

"""Where things stand: in the Tile IR text, and in the source that it was compiled from."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A place in a Tile IR text."""

    line: int  #: from 1
    column: int  #: from 1

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A place in the Python or Rust source that an operation came from."""

    file: str  #: path as the front end recorded it
    line: int  #: from 1
    column: int  #: as the front end counts, mostly from 0
    caller: "Source | None" = None  #: where the function that holds this place was called

    @property
    def outermost(self) -> "Source":
        """The place in the kernel itself, outside every helper function."""
        place = self
        while place.caller is not None:
            place = place.caller
        return place

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

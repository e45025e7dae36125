"""What a comparison found to be different."""

from dataclasses import dataclass
from enum import StrEnum

from farm.tileir.span import Source, Span


class DifferenceKind(StrEnum):
    """What sort of thing differs."""

    OPERATION = "operation"  #: another operation or mode of it
    EFFECT = "effect"  #: a memory access, print or early end is missing, extra or elsewhere
    DATA_FLOW = "data flow"  #: an operand comes from somewhere else
    OPERAND_ORDER = "operand order"  #: the same operands in another order
    INDEX_ORDER = "index order"  #: the same indices, extents or strides in another order
    MASK = "mask"  #: which elements are touched
    PADDING = "padding"  #: what elements outside hold
    PREDICATE = "predicate"  #: what a comparison asks
    SIGNEDNESS = "signedness"  #: signed or unsigned
    CONSTANT = "constant"  #: a constant's value
    ROUNDING = "rounding"  #: a rounding mode
    FLUSH = "flush"  #: what happens to denormals
    OVERFLOW = "overflow"  #: what is promised about overflow
    COMBINER = "combiner"  #: how a reduction or scan combines, its identity or dimension
    PERMUTATION = "permutation"  #: order of dimensions
    LOOP_BOUND = "loop bound"  #: where a loop starts or ends, or its step
    CARRIED_VALUE = "carried value"  #: what a loop passes on
    TOKEN_ORDER = "token order"  #: what a memory access waits for
    MEMORY_ORDER = "memory order"  #: ordering or scope of a memory access
    TYPE = "type"  #: element, shape or strides
    HINT = "hint"  #: an optimisation hint
    FACT = "fact"  #: what is promised about a quantity


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one side of a difference stands."""

    operation: str  #: the operation's name, or `%name` of a parameter
    span: Span | None  #: in the Tile IR text
    source: Source | None  #: in the source, where the text has locations

    def __str__(self) -> str:
        where = f"line {self.span}" if self.span else "nowhere"
        return f"`{self.operation}` at {where}" + (f" ({self.source.outermost})" if self.source else "")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first difference of two entries."""

    kind: DifferenceKind
    reference: Place | None  #: None: the reference has nothing there
    candidate: Place | None  #: None: the candidate has nothing there
    sentence: str  #: what differs

    def __str__(self) -> str:
        sides = (("reference", self.reference), ("candidate", self.candidate))
        return f"{self.kind}: {self.sentence}" + "".join(f"\n  {side}: {place}" for side, place in sides if place)

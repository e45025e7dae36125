"""What a test gets when it looks at numbers that nobody computed.

A fake tensor has no values. A test that compares is told what it hopes for, so that it goes on to its
next launch; the gates measure whether it would have been true. Code of the op that looks at values is
refused: what it decides on them cannot be traced.
"""

from typing import Any


class HostReadsData(Exception):
    """Host code of the op reads a tensor's values, which do not exist while tracing."""


class ComparisonReached(Exception):
    """The test needs real numbers from here on; its row ends."""


class MetadataMismatch(AssertionError):
    """Two tensors that should be close differ in shape or dtype already."""


class Answer:
    """A number that fulfils every comparison and survives arithmetic."""

    def _self(self, *_others: Any) -> "Answer":
        return self

    def _true(self, *_others: Any) -> bool:
        return True

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _self
    __pow__ = __neg__ = __abs__ = __round__ = __floordiv__ = __mod__ = _self
    __lt__ = __le__ = __gt__ = __ge__ = _true
    __hash__ = None  # type: ignore[assignment]  # equal to everything: it must not be a key

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False

    def __bool__(self) -> bool:
        return True

    def __float__(self) -> float:
        return 0.0

    def __int__(self) -> int:
        raise ComparisonReached("an integer was read from a tensor without values")

    __index__ = __int__

    def __format__(self, _spec: str) -> str:
        return "?"

    def __repr__(self) -> str:
        return "?"

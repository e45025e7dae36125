"""Test rows of one backend: which they are and how they are named for both backends."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def backend_of(params: Mapping[str, Any]) -> str | None:
    """The value of the row's backend parameter, or None.

    A parameter is one when its name contains `backend`. Performance cases choose theirs by a
    `framework`, which also takes values that are no backends: they are not rows.
    """
    for name, value in params.items():
        if "backend" in name.lower() and isinstance(value, str):
            return value
    return None


def is_case(function: str) -> bool:
    """Whether a test function compares results: performance cases, told by their name, do not."""
    words = function.lower().split("_")
    return not any(word.startswith(("perf", "bench")) for word in words)


def row_key(function: str, params: Mapping[str, Any], indices: Mapping[str, int]) -> str:
    """A name of the row that does not depend on its backend.

    Values that print themselves by their place in memory are named by their position instead.
    """
    parts = [
        f"{name}={_text(value, indices.get(name, 0))}"
        for name, value in sorted(params.items())
        if "backend" not in name.lower()
    ]
    return f"{function}[{', '.join(parts)}]"


def numbered(keys: Sequence[str]) -> list[str]:
    """The keys, with `#2`, `#3`, .. after the second, third, .. equal one."""
    seen: Counter[str] = Counter()
    result = []
    for key in keys:
        seen[key] += 1
        result.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return result


def _text(value: Any, index: int) -> str:
    text = repr(value)
    return f"#{index}" if " at 0x" in text else text

"""Smaller forms of large captured calls."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from containers.box.gate.probes.calls import Call
from containers.box.gate.probes.cases import Case
from containers.box.gate.probes.plan import base_case
from containers.box.gate.probes.shapes import shrunk


def small_enough(call: Call, most_elements: int, attempt: Callable[[Case], dict[str, Any]]) -> Call:
    """The call, or the largest smaller form with at most `most_elements` elements that the source takes.

    Where the source refuses them all, the call as it was.
    """
    limit = most_elements
    while call.elements > most_elements and limit >= most_elements // 8:
        smaller = shrunk(call, limit)
        if smaller.elements <= most_elements and attempt(base_case(smaller))["raised"] is None:
            return replace(smaller, key=call.key)
        limit //= 2
    return call

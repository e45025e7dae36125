"""Compares the launches that the candidate's host code made with the traced ones of the reference. WIP"""

from enum import StrEnum

_REGION_BITS = 38
_INDEX_BITS = 22


class Maker(StrEnum):
    """Whose code made a storage."""

    TEST = "test"  #: the row itself: the same storages in the same order for both backends
    OP = "op"  #: the op's host code: the order may differ between backends
    ENGINE = "engine"  #: autograd, between two calls of the op's own code


_SPACE = {Maker.TEST: 1, Maker.OP: 2, Maker.ENGINE: 3}


def region_address(maker: Maker, index: int) -> int:
    """First byte of the region of a storage: 256 GiB each, so an offset never reaches the next one."""
    return (_SPACE[maker] << (_REGION_BITS + _INDEX_BITS)) + (index << _REGION_BITS)

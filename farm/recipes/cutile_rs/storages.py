"""Which storage is which: synthetic addresses of a trace, and their correspondence between backends.

An address names its storage: a space for who made it, a region of 256 GiB for the how-manieth it was,
and the offset in bytes. Storages that the row's own test code makes are the same for both backends.
What the op's host code makes may come in another order, so those correspond one to one.
"""

from enum import StrEnum

_OFFSET_BITS = 38
_INDEX_BITS = 22


class Maker(StrEnum):
    """Whose code made a storage."""

    TEST = "test"  #: the row itself: the same storages in the same order for both backends
    OP = "op"  #: the op's host code: the order may differ between backends
    ENGINE = "engine"  #: autograd, between two calls of the op's own code


_SPACE = {Maker.TEST: 1, Maker.OP: 2, Maker.ENGINE: 3}
_MAKER = {space: maker for maker, space in _SPACE.items()}


def region_address(maker: Maker, index: int) -> int:
    """First byte of the region of the storage that `maker` made as number `index`, from 0."""
    if not 0 <= index < 1 << _INDEX_BITS:
        raise ValueError(f"a row with more than {1 << _INDEX_BITS} storages cannot be traced")
    return (_SPACE[maker] << (_OFFSET_BITS + _INDEX_BITS)) + (index << _OFFSET_BITS)


def maker_of(address: int) -> Maker | None:
    """Who made the storage that the address lies in; None for an address of no trace."""
    return _MAKER.get(address >> (_OFFSET_BITS + _INDEX_BITS))


def split(address: int) -> tuple[int, int]:
    """The storage (first byte of its region) and the offset in it, bytes.

    An address of no trace, such as memory that the host code got from the driver, is its own storage.
    """
    if maker_of(address) is None:
        return address, 0
    offset = address & ((1 << _OFFSET_BITS) - 1)
    return address - offset, offset


def described(address: int) -> str:
    """The storage in words."""
    maker = maker_of(address)
    if maker is None:
        return f"memory at 0x{address:x} that is no tensor's"
    index = (address >> _OFFSET_BITS) & ((1 << _INDEX_BITS) - 1)
    whose = {Maker.TEST: "the test's", Maker.OP: "the host code's", Maker.ENGINE: "autograd's"}[maker]
    return f"{whose} tensor {index}"


class Correspondence:
    """A one-to-one map between the storages of a reference row and of a candidate row, found step by step."""

    def __init__(self) -> None:
        self._candidate: dict[int, int] = {}
        self._reference: dict[int, int] = {}

    def mismatch(self, reference: int, candidate: int, what: str) -> str | None:
        """Why two addresses cannot be the same place, or None; then their storages correspond from now on."""
        mine, my_offset = split(reference)
        theirs, their_offset = split(candidate)
        if Maker.TEST in (maker_of(reference), maker_of(candidate)) and mine != theirs:
            return f"{what} is {described(mine)}, the candidate passes {described(theirs)}"
        known = self._candidate.get(mine)
        if known is not None and known != theirs:
            before = described(known)
            return f"{what} is the storage that was {before} before, the candidate passes {described(theirs)}"
        taken = self._reference.get(theirs)
        if taken is not None and taken != mine:
            other = described(theirs)
            return f"{what} has a storage of its own, the candidate passes {other}, which stands for another"
        if my_offset != their_offset:
            return f"{what} starts {my_offset} bytes into its storage, the candidate's {their_offset} bytes"
        self._candidate[mine], self._reference[theirs] = theirs, mine
        return None

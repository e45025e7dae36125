"""Addresses name storages by who made them and in which order."""

from dataclasses import dataclass, field

from containers.box.trace.addresses import AddressBook
from farm.recipes.cutile_rs.storages import Maker, maker_of, split


@dataclass
class Storage:
    _cdata: int


@dataclass
class Tensor:
    storage: Storage
    offset: int = 0
    size: int = field(default=4)

    def untyped_storage(self) -> Storage:
        return self.storage

    def storage_offset(self) -> int:
        return self.offset

    def element_size(self) -> int:
        return self.size


def test_views_of_a_storage_differ_by_their_offset() -> None:
    book = AddressBook(lambda: Maker.TEST)
    storage = Storage(7)
    whole, part = book.address(Tensor(storage)), book.address(Tensor(storage, offset=16))
    assert part - whole == 64
    assert split(part) == (whole, 64)


def test_storages_are_aligned_and_far_apart() -> None:
    book = AddressBook(lambda: Maker.OP)
    first, second = book.see(Storage(1)), book.see(Storage(2))
    assert first % 512 == second % 512 == 0
    assert second - first == 256 << 30


def test_what_the_op_makes_does_not_shift_what_the_test_makes() -> None:
    def tests_addresses(order: list[Maker]) -> list[int]:
        turns = iter(order)
        book = AddressBook(lambda: next(turns))
        seen = [book.see(Storage(i)) for i in range(len(order))]
        return [address for address in seen if maker_of(address) is Maker.TEST]

    plain = tests_addresses([Maker.TEST, Maker.TEST])
    assert tests_addresses([Maker.TEST, Maker.OP, Maker.ENGINE, Maker.OP, Maker.TEST]) == plain

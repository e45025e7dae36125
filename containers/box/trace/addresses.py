"""Synthetic device addresses: one region a storage, named by who made the storage and in which order.

Both backends' runs of a row execute the same test code, so the n-th storage that the test itself makes
has the same address in both. What an op's own code makes may come in another order; it gets addresses
from a space of its own, which `farm.recipes.cutile_rs.storages` matches by a bijection.
"""

from collections.abc import Callable
from typing import Any

from farm.recipes.cutile_rs.storages import Maker, region_address


class AddressBook:
    """Gives each storage of one row its address."""

    def __init__(self, maker: Callable[[], Maker]) -> None:
        self._maker = maker
        self._address: dict[int, int] = {}
        self._alive: list[Any] = []  # keeps storages alive, so that their ids stay theirs
        self._made = dict.fromkeys(Maker, 0)

    def see(self, storage: Any) -> int:
        """The storage's address in bytes; assigned at the first sight of it."""
        key = storage._cdata
        if key not in self._address:
            maker = self._maker()
            self._address[key] = region_address(maker, self._made[maker])
            self._made[maker] += 1
            self._alive.append(storage)
        return self._address[key]

    def address(self, tensor: Any) -> int:
        """The address of the tensor's element 0, bytes."""
        return self.see(tensor.untyped_storage()) + int(tensor.storage_offset()) * int(tensor.element_size())

"""Types of Tile IR values."""

import math
import re
from dataclasses import dataclass

_TILE = re.compile(r"tile<((?:\d+x)*)(.+)>$", re.DOTALL)
_PARTITION = re.compile(r"partition_view<tile=\(([\dx]+)\)")
_TENSOR = re.compile(r"tensor_view<((?:(?:\d+|\?)x)*)([^,>]+)")
_DIM_MAP = re.compile(r"dim_map=\[([\d, ]+)\]")
_BITS = re.compile(r"(?:i|f|bf|tf)(\d+)|f(\d+)E")


@dataclass(frozen=True, slots=True)
class Type:
    """A type, by its canonical text; two types are equal when their texts are."""

    text: str  #: e.g. `tile<64x64xf16>`, `token`
    shape: tuple[int, ...] | None  #: extents of a tile; () for a scalar; None: not a tile
    element: str  #: element of a tile, e.g. `f16`, `ptr<f16>`; else the whole text

    @property
    def is_token(self) -> bool:
        """Whether the value only orders memory operations."""
        return self.text == "token"

    @property
    def is_pointer(self) -> bool:
        """Whether the elements are addresses."""
        return self.element.startswith("ptr<")

    @property
    def bits(self) -> int | None:
        """Width of an element, bits; None where elements have no fixed width."""
        if self.is_pointer:
            return 64
        found = _BITS.match(self.element)
        if found is None:
            return None
        width = int(found.group(1) or found.group(2))
        return 32 if self.element == "tf32" else width

    @property
    def bytes(self) -> int | None:
        """Size as a kernel parameter, bytes; None for what cannot be one."""
        if self.shape is None or self.bits is None:
            return None
        return max(1, (self.bits + 7) // 8) * math.prod(self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> "Type":
        """The tile type of the same element with another shape."""
        return tile(shape, self.element)


def tile(shape: tuple[int, ...], element: str) -> Type:
    """The tile type of this shape (elements) and element."""
    return Type("tile<" + "".join(f"{extent}x" for extent in shape) + element + ">", shape, element)


def read_type(text: str) -> Type:
    """The type that a text spells; anything but a tile is kept as it stands."""
    found = _TILE.match(text)
    if found is None:
        return Type(text, None, text)
    dims = found.group(1)
    return Type(text, tuple(int(extent) for extent in dims.split("x")[:-1]), found.group(2))


def view_tile(view: Type) -> tuple[int, ...] | None:
    """Tile extents of a partition view, in the order of its index space; None for other types."""
    found = _PARTITION.match(view.text)
    return tuple(int(extent) for extent in found.group(1).split("x")) if found else None


def view_dim_map(view: Type) -> tuple[int, ...] | None:
    """For each dimension of a view's index space the tensor dimension it runs over; None: in order."""
    found = _DIM_MAP.search(view.text)
    return tuple(int(dim) for dim in found.group(1).split(",")) if found else None


def tensor_shape(view: Type) -> tuple[int | None, ...] | None:
    """Static extents of the tensor view in a view type; None for a dynamic one, None for other types."""
    found = _TENSOR.search(view.text)
    if found is None:
        return None
    return tuple(None if extent == "?" else int(extent) for extent in found.group(1).split("x")[:-1])

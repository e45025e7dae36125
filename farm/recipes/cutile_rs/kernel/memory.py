"""Reads and writes of arrays: gather and scatter by index, load and store by tile."""

from typing import Any

from farm.recipes.cutile_rs.kernel import dtypes
from farm.recipes.cutile_rs.kernel.build import Builder, Operand
from farm.recipes.cutile_rs.kernel.model import Api, Array, Dim, DType, Items, Known, Node, TileType
from farm.recipes.cutile_rs.kernel.refusal import Limit

#: Padding modes of ct.load and their names in the target.
PADDING = {
    "UNDETERMINED": "None", "ZERO": "Zero", "NEG_ZERO": "NegZero", "NAN": "Nan", "POS_INF": "PosInf",
    "NEG_INF": "NegInf",
}  # fmt: skip


class Memory:
    """Builds the operations that touch memory, in the order in which they happen."""

    def __init__(self, builder: Builder) -> None:
        self.build = builder
        self.measures: dict[tuple[str, str, int], Node] = {}  #: (extent or stride, array, axis)
        self._wide: dict[tuple[Node, tuple[Dim, ...], int], Node] = {}

    def measure(self, op: str, array: str, axis: int) -> Node:
        """An array's extent or stride, a runtime parameter of the entry."""
        key = (op, array, axis)
        if key not in self.measures:
            type_ = TileType(self.build.same("i32"), ())
            self.measures[key] = Node(op, type_, attrs={"array": array, "axis": axis})
        return self.measures[key]

    def dim(self, value: Any) -> Dim:
        """A tile extent given as an argument."""
        raise NotImplementedError

    def tile(self, value: Any) -> Node:
        """A tile given as an argument."""
        raise NotImplementedError

    def do_gather(
        self, array: Any, indices: Any, mask: Any, padding_value: Any, check_bounds: Any, latency: Any
    ) -> Node:
        """The elements at `indices`; lanes out of bounds or masked out get the padding value."""
        target = self.array(array)
        index, shape = self._indices(target, indices)
        checked = bool(self.build.agreed(check_bounds))
        masked = self._mask(mask, shape)
        pad = self._padding(padding_value, target.dtype)
        operands = (*index, *((masked,) if masked else ()))
        node = self.build.add("gather", TileType(target.dtype, shape), *operands)
        node.attrs |= {
            "array": target, "checked": checked, "masked": masked is not None, "pad": pad,
            "latency": self._hint(latency),
        }  # fmt: skip
        return node

    def do_scatter(
        self, array: Any, indices: Any, value: Any, mask: Any, check_bounds: Any, latency: Any
    ) -> Known:
        """Writes `value` to the elements at `indices` that are in bounds and not masked out."""
        target = self.array(array)
        index, shape = self._indices(target, indices)
        stored = self.build.broadcast(self.stored(value, target.dtype), shape)
        masked = self._mask(mask, shape)
        node = self.build.add("scatter", None, *index, *((masked,) if masked else ()), stored)
        node.attrs |= {
            "array": target, "checked": bool(self.build.agreed(check_bounds)), "masked": masked is not None,
            "latency": self._hint(latency), "shape": shape,
        }  # fmt: skip
        return Known((None,) * self.build.lanes)

    def do_load(self, array: Any, index: Any, shape: Any, **options: Any) -> Node:
        """The tile of an array at a tile index."""
        target = self.array(array)
        place, extents, attrs = self._view(target, index, shape, options)
        padding = options["padding_mode"]
        name = padding.name.split(".")[-1] if isinstance(padding, Api) else "UNDETERMINED"
        node = self.build.add("load", TileType(target.dtype, extents), *place[0], **attrs)
        node.attrs |= {"index": place[1], "padding": PADDING[name]}
        wanted = shape.items if isinstance(shape, Items) else (shape,)
        return node if wanted else self.build.reshape(node, ())

    def do_store(self, array: Any, index: Any, tile: Any, **options: Any) -> Known:
        """Writes a tile to an array at a tile index; what lies outside is dropped."""
        target = self.array(array)
        stored = self.stored(tile, target.dtype)
        assert stored.type is not None
        one = Dim("1", (1,) * self.build.lanes)
        stored = self.build.reshape(stored, stored.type.shape or (one,) * target.rank)
        assert stored.type is not None
        place, _, attrs = self._view(target, index, stored.type.shape, options)
        node = self.build.add("store", None, *place[0], stored, **attrs)
        node.attrs |= {"index": place[1], "padding": "None", "shape": stored.type.shape}
        return Known((None,) * self.build.lanes)

    def do_num_tiles(self, array: Any, axis: Any, shape: Any, order: Any) -> Node:
        """How many tiles of a shape cover an array along an axis."""
        target = self.array(array)
        self._plain_order(order, target)
        extents = tuple(self.dim(item) for item in (shape.items if isinstance(shape, Items) else (shape,)))
        type_ = TileType(self.build.same("i32"), ())
        place = self.build.agreed(axis)
        return self.build.add("num_tiles", type_, array=target, axis=place % target.rank, shape=extents)

    def array(self, value: Any) -> Array:
        """An array argument. Raises Refusal for anything else."""
        if isinstance(value, Array):
            return value
        raise self.build.refuse("this is no array parameter of the kernel", "pass an array parameter")

    def stored(self, value: Any, dtype: DType) -> Node:
        """A value converted to the array's element type, where a store may do that by itself."""
        if isinstance(value, Known):
            return self.build.convert(value, dtype)
        node = self.tile(value)
        assert node.type is not None
        for have, want in zip(node.type.dtype.lanes, dtype.lanes, strict=True):
            if not dtypes.implicit(have, want):
                raise self.build.refuse(f"a store of {have} into an array of {want}", "convert with ct.astype")
        return self.build.convert(node, dtype)

    def _indices(self, array: Array, indices: Any) -> tuple[tuple[Node, ...], tuple[Dim, ...]]:
        """One index tile an axis, of 64 unsigned bits and the common shape."""
        items = indices.items if isinstance(indices, Items) else (indices,)
        if len(items) != array.rank:
            raise self.build.refuse(f"{array.name} has {array.rank} axes", "give one index an axis")
        shapes = [item.type.shape for item in items if isinstance(item, Node) and item.type]
        shape = self.build.common_shape((), *shapes)
        return tuple(self._widened(item, shape) for item in items), shape

    def _widened(self, index: Any, shape: tuple[Dim, ...]) -> Node:
        wide = self.build.same("u64")
        if isinstance(index, Known):
            return self.build.broadcast(self.build.constant(index, wide), shape)
        if not isinstance(index, Node) or index.type is None:
            raise self.build.refuse("this is no index", "use an integer or a tile of integers")
        if set(index.type.dtype.lanes) != {"i32"}:
            raise Limit(what="a 64-bit index").refuse(self.build.place, "index with ct.int32")
        key = (index, shape, id(self.build.block))
        if key not in self._wide:
            if index.type.shape == () and shape:
                self._wide[key] = self.build.add("widen", TileType(wide, shape), index)
            else:
                self._wide[key] = self.build.broadcast(self.build.convert(index, wide), shape)
        return self._wide[key]

    def _mask(self, mask: Any, shape: tuple[Dim, ...]) -> Node | None:
        if isinstance(mask, Known) and mask.lanes[0] is None:
            return None
        if not isinstance(mask, (Node, Known)):
            raise self.build.refuse("this is no mask", "use a tile of booleans")
        return self.build.fitted(mask, self.build.same("bool"), shape)

    def _padding(self, value: Any, dtype: DType) -> Known:
        if not isinstance(value, Known):
            raise self.build.refuse("a padding value that is computed", "use ct.where after the gather")
        self.build.agreed(value)
        kind = self.build.categories(dtype)
        number = value.lanes[0]
        truth = kind is dtypes.Category.BOOLEAN and number in (0, 1) and not isinstance(number, float)
        if dtypes.category(dtypes.of_constant(number)) > kind and not truth:
            raise self.build.refuse(
                f"{number!r} cannot pad an array of {dtype.code}", "use a padding value of its type"
            )
        return value

    def _hint(self, value: Any) -> int | None:
        hint = self.build.agreed(value) if isinstance(value, Known) else None
        if hint is not None and type(hint) is not int:
            raise self.build.refuse("a latency that is no integer", "use an integer")
        return hint

    def _view(
        self, array: Array, index: Any, shape: Any, options: dict[str, Any]
    ) -> tuple[tuple[tuple[Node, ...], tuple[Operand, ...]], tuple[Dim, ...], dict[str, Any]]:
        self._plain_order(options["order"], array)
        for name in ("memory_order", "memory_scope"):
            if not isinstance(options[name], Known):
                raise self.build.refuse(f"a {name} of its own", "leave it out")
        if not self.build.agreed(options["check_bounds"]):
            raise Limit(what="a tile access without bounds checks").refuse(
                self.build.place, "leave check_bounds out"
            )
        items = index.items if isinstance(index, Items) else (index,)
        if len(items) != array.rank or not all(isinstance(item, (Node, Known)) for item in items):
            raise self.build.refuse(f"{array.name} has {array.rank} axes", "give one tile index an axis")
        for item in items:
            if isinstance(item, Node) and item.type and (item.type.shape or set(item.type.dtype.lanes) != {"i32"}):
                raise self.build.refuse("a tile index has to be a 32-bit scalar", "use ct.bid, range or ct.int32")
        if isinstance(shape, tuple):
            extents = shape
        else:
            given = shape.items if isinstance(shape, Items) else (shape,)
            extents = tuple(self.dim(item) for item in given)
            extents = extents or (Dim("1", (1,) * self.build.lanes),) * array.rank
        if len(extents) != array.rank:
            raise self.build.refuse(f"{array.name} has {array.rank} axes", "give one extent an axis")
        tma = options["allow_tma"]
        attrs = {
            "array": array, "latency": self._hint(options["latency"]),
            "tma": None if not isinstance(tma, Known) else self.build.agreed(tma),
        }  # fmt: skip
        nodes = tuple(item for item in items if isinstance(item, Node))
        return (nodes, items), extents, attrs

    def _plain_order(self, order: Any, array: Array) -> None:
        if isinstance(order, Items):
            axes = [self.build.agreed(axis) for axis in order.items]
        else:
            value = self.build.agreed(order)
            axes = list(range(array.rank)) if value == "C" else list(reversed(range(array.rank)))
        if axes != list(range(array.rank)):
            raise self.build.refuse("a tile access with permuted axes", "load in order and use ct.permute")

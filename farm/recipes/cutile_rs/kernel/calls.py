"""The source language's functions, one method each."""

import ast
import math
from typing import Any

from farm.recipes.cutile_rs.kernel import dtypes
from farm.recipes.cutile_rs.kernel.build import COMPARISONS, Builder, Operand
from farm.recipes.cutile_rs.kernel.dtypes import Category
from farm.recipes.cutile_rs.kernel.memory import Memory
from farm.recipes.cutile_rs.kernel.model import Api, Dim, DType, Items, Known, Node, TileType
from farm.recipes.cutile_rs.kernel.refusal import Limit, Refusal

REQUIRED = object()
_MODE = {"rounding_mode": None, "flush_to_zero": False}
_NAN = {"flush_to_zero": False, "propagate_nan": False}
_AXIS = {"x": REQUIRED, "axis": None, "keepdims": False}
_XY: dict[str, Any] = {"x": REQUIRED, "y": REQUIRED}
_X: dict[str, Any] = {"x": REQUIRED}

#: Parameters of every function with a rule, in order, with defaults.
SIGNATURES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("floordiv", "cdiv", "mod", "pow", "atan2", "equal", "not_equal", "less"), _XY),
    **dict.fromkeys(("less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or"), _XY),
    **dict.fromkeys(("bitwise_xor", "bitwise_lshift", "bitwise_rshift"), _XY),
    **dict.fromkeys(("add", "sub", "mul", "truediv"), _XY | _MODE),
    **dict.fromkeys(("minimum", "maximum"), _XY | _NAN),
    **dict.fromkeys(("abs", "ceil", "cos", "cosh", "floor", "log", "log2", "negative", "sin", "sinh"), _X),
    **dict.fromkeys(("tan", "bitwise_not", "isnan", "item"), _X),
    **{name: _X | {"flush_to_zero": False} for name in ("exp2", "rsqrt")},
    **{name: _X | {"rounding_mode": None} for name in ("exp", "tanh")},
    "sqrt": _X | _MODE,
    **dict.fromkeys(("sum", "prod"), _AXIS | _MODE),
    **dict.fromkeys(("max", "min"), _AXIS | _NAN),
    "astype": _X | {"dtype": REQUIRED, "rounding_mode": None},
    "astile": {"value": REQUIRED, "dtype": None},
    "bid": {"axis": REQUIRED},
    "num_blocks": {"axis": REQUIRED},
    "arange": {"size": REQUIRED, "dtype": REQUIRED, "start": 0, "step": 1},
    "full": {"shape": REQUIRED, "fill_value": REQUIRED, "dtype": REQUIRED},
    "zeros": {"shape": REQUIRED, "dtype": REQUIRED},
    "ones": {"shape": REQUIRED, "dtype": REQUIRED},
    "where": {"cond": REQUIRED, **_XY},
    "reshape": _X | {"shape": REQUIRED},
    "broadcast_to": _X | {"shape": REQUIRED},
    "expand_dims": _X | {"axis": REQUIRED},
    "permute": _X | {"axes": REQUIRED},
    "transpose": _X | {"axis0": None, "axis1": None},
    "static_assert": {"condition": REQUIRED, "message": None},
    "gather": {
        "array": REQUIRED, "indices": REQUIRED, "mask": None, "padding_value": 0, "check_bounds": True,
        "latency": None,
    },
    "scatter": {
        "array": REQUIRED, "indices": REQUIRED, "value": REQUIRED, "mask": None, "check_bounds": True,
        "latency": None,
    },
    "load": {
        "array": REQUIRED, "index": REQUIRED, "shape": REQUIRED, "order": "C", "padding_mode": None,
        "check_bounds": True, "latency": None, "allow_tma": None, "memory_order": None, "memory_scope": None,
    },
    "store": {
        "array": REQUIRED, "index": REQUIRED, "tile": REQUIRED, "order": "C", "check_bounds": True,
        "latency": None, "allow_tma": None, "memory_order": None, "memory_scope": None,
    },
    "num_tiles": {"array": REQUIRED, "axis": REQUIRED, "shape": REQUIRED, "order": "C"},
}  # fmt: skip
RENAMED = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "bitwise_lshift": "shl", "bitwise_rshift": "shr", "minimum": "min", "maximum": "max",
    "negative": "neg", "bitwise_not": "invert",
}  # fmt: skip
ROUNDING = {
    "RN": "NearestEven", "RZ": "Zero", "RM": "NegativeInf", "RP": "PositiveInf", "FULL": "Full",
    "APPROX": "Approx",
}  # fmt: skip


class Calls(Memory):
    """Functions of numbers, shapes and reductions; memory is the base class's part."""

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        self.build = builder

    def api(self, call: ast.AST, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        """A call of the function `name`. Raises Refusal when there is no rule for it."""
        self.build.place = call
        signature = SIGNATURES.get(name)
        if signature is None:
            raise Refusal(call, f"the translator has no rule for ct.{name}", "see the list of functions it knows")
        names = list(signature)
        bound = dict(zip(names, args, strict=False)) | keywords
        for key, default in signature.items():
            if key not in bound:
                if default is REQUIRED:
                    raise Refusal(call, f"ct.{name} is called without {key}", f"give {key}")
                bound[key] = Known((default,) * self.build.lanes)
        for key in bound:
            if key not in signature:
                raise Refusal(call, f"ct.{name} has no rule for the argument {key}", "leave it out")
        fn = RENAMED.get(name, name)
        if hasattr(self, f"do_{name}"):
            return getattr(self, f"do_{name}")(**bound)
        if fn in COMPARISONS:
            return self.build.compared(fn, self.number(bound["x"]), self.number(bound["y"]))
        if "y" in bound:
            mode = self.modes(bound)
            return self.arithmetic(fn, self.number(bound["x"]), self.number(bound["y"]), **mode)
        return self.unary_call(fn, self.number(bound["x"]), bound)

    def python(self, call: ast.AST, name: str, args: list[Any]) -> Any:
        """A call of a Python builtin or of the math module."""
        numbers = [arg for arg in args if isinstance(arg, (Node, Known))]
        if name in ("min", "max") and len(numbers) == len(args) == 2:
            return self.arithmetic(name, numbers[0], numbers[1])
        if name == "abs" and len(numbers) == len(args) == 1:
            return self.build.unary("abs", numbers[0])
        if name == "len" and len(args) == 1 and isinstance(args[0], Items):
            return Known((len(args[0].items),) * self.build.lanes)
        if name == "print":
            return Known((None,) * self.build.lanes)
        known = [arg for arg in args if isinstance(arg, Known)]
        if name in ("int", "float", "bool") and len(known) == len(args) == 1:
            make: Any = {"int": int, "float": float, "bool": bool}[name]
            source = None if known[0].source is None else f"{name}({known[0].source})"
            return Known(tuple(make(v) for v in known[0].lanes), known[0].code if name == "int" else None, source)
        function = getattr(math, name.removeprefix("math."), None) if name.startswith("math.") else None
        if function is not None and known and len(known) == len(args):
            for value in known:
                self.build.agreed(value)
            return Known((function(*(value.lanes[0] for value in known)),) * self.build.lanes)
        raise Refusal(call, f"the translator has no rule for {name}", "use a function of ct")

    # ---- arithmetic ----------------------------------------------------------------------

    def number(self, value: Any) -> Operand:
        """A tile or known number. Raises Refusal for anything else."""
        if isinstance(value, (Node, Known)):
            return value
        raise self.build.refuse("this is no number or tile", "pass a tile or a number")

    def arithmetic(self, fn: str, x: Operand, y: Operand, **mode: Any) -> Any:
        """A binary function, with its rounding and flush modes."""
        if fn in COMPARISONS:
            return self.build.compared(fn, x, y)
        result = self.build.binary(fn, x, y, **mode)
        if isinstance(result, Node) and result.op == "binary":
            kind = self.build.categories(result.type.dtype)  # type: ignore[union-attr]
            if fn == "pow" and not isinstance(y, Known):
                pass
            if kind is Category.INTEGER and fn in ("pow", "atan2"):
                raise self.build.refuse(f"ct.{fn} of integers", "convert to a float type first")
        return result

    def modes(self, bound: dict[str, Any]) -> dict[str, Any]:
        """Rounding and flush modes of a call, without those at their defaults."""
        found: dict[str, Any] = {}
        rounding = bound.get("rounding_mode")
        if isinstance(rounding, Api):
            found["rounding"] = ROUNDING.get(rounding.name.split(".")[-1])
            if found["rounding"] is None:
                raise Limit(what=f"the rounding mode {rounding.name}").refuse(
                    self.build.place, "use another rounding mode"
                )
        for key, name in (("flush_to_zero", "ftz"), ("propagate_nan", "nan")):
            value = bound.get(key)
            if isinstance(value, Known) and self.build.agreed(value):
                found[name] = True
        return found

    def unary_call(self, fn: str, x: Operand, bound: dict[str, Any]) -> Any:
        """A unary function; the modes that the target cannot say are refused."""
        mode = self.modes(bound)
        if fn in ("exp", "tanh") and mode.get("rounding") == "Full":
            mode.pop("rounding")
        if fn in ("exp", "tanh") and "rounding" in mode:
            raise Limit(what=f"`{fn}` with a rounding mode").refuse(
                self.build.place, f"leave the rounding mode of ct.{fn} out"
            )
        if isinstance(x, Known) and mode:
            mode = {}
        return self.build.unary(fn, x, **mode)

    def do_isnan(self, x: Any) -> Any:
        """A value that differs from itself."""
        node = self.number(x)
        if isinstance(node, Known):
            return Known(tuple(v != v for v in node.lanes))
        result = self.build.compare("ne", node, node)
        result.attrs["unordered"] = True
        return result

    def do_where(self, cond: Any, x: Any, y: Any) -> Node:
        """Element-wise choice."""
        return self.build.where(self.number(cond), self.number(x), self.number(y))

    def do_astype(self, x: Any, dtype: Any, rounding_mode: Any = None) -> Any:
        """Conversion of the element type."""
        if isinstance(rounding_mode, Api) and not rounding_mode.name.endswith(".RN"):
            raise self.build.refuse("a conversion with a rounding mode", "leave rounding_mode out")
        return self.build.convert(self.number(x), self.element(dtype))

    def do_astile(self, value: Any, dtype: Any) -> Any:
        """A number as a tile."""
        return self.build.convert(self.number(value), self.element(dtype))

    def element(self, value: Any) -> DType:
        """An element type given as an argument."""
        if isinstance(value, DType):
            return value
        if isinstance(value, Known) and all(v in dtypes.SPELLINGS for v in value.lanes):
            return self.build.same(dtypes.SPELLINGS[self.build.agreed(value)])
        raise self.build.refuse("this is no element type", "write ct.float32, x.dtype, ..")

    # ---- where a block is ----------------------------------------------------------------

    def do_bid(self, axis: Any) -> Node:
        """This block's index along a grid axis."""
        return self._grid("block", axis)

    def do_num_blocks(self, axis: Any) -> Node:
        """The grid's extent along an axis."""
        return self._grid("blocks", axis)

    def _grid(self, op: str, axis: Any) -> Node:
        place = self.build.agreed(axis) if isinstance(axis, Known) else None
        if place not in (0, 1, 2):
            raise self.build.refuse("a grid axis has to be 0, 1 or 2", "write the number")
        return self.build.add(op, TileType(self.build.same("i32"), ()), axis=place)

    # ---- creation ------------------------------------------------------------------------

    def shape(self, value: Any) -> tuple[Dim, ...]:
        """A tile shape given as an argument."""
        items = value.items if isinstance(value, Items) else (value,)
        return tuple(self.dim(item) for item in items)

    def dim(self, value: Any) -> Dim:
        """A tile extent given as an argument."""
        if not isinstance(value, Known) or not all(type(v) is int for v in value.lanes):
            raise self.build.refuse("a tile's extent has to be known", "use a literal or a ct.Constant parameter")
        if value.code is not None and value.code.isidentifier():
            return Dim(value.code, value.lanes)
        extent = self.build.agreed(value)
        return Dim(str(extent), value.lanes)

    def do_full(self, shape: Any, fill_value: Any, dtype: Any) -> Node:
        """A tile of one value."""
        return self.build.fitted(self.number(fill_value), self.element(dtype), self.shape(shape))

    def do_zeros(self, shape: Any, dtype: Any) -> Node:
        """A tile of zeros."""
        return self.do_full(shape, Known((0,) * self.build.lanes), dtype)

    def do_ones(self, shape: Any, dtype: Any) -> Node:
        """A tile of ones."""
        return self.do_full(shape, Known((1,) * self.build.lanes), dtype)

    def do_arange(self, size: Any, dtype: Any, start: Any, step: Any) -> Any:
        """0, 1, .. size - 1, scaled and shifted."""
        element, extent = self.element(dtype), self.dim(size)
        result: Any = self.build.add("iota", TileType(element, (extent,)))
        if not (isinstance(step, Known) and set(step.lanes) == {1}):
            result = self.build.binary("mul", result, self.number(step))
        if not (isinstance(start, Known) and set(start.lanes) == {0}):
            result = self.build.binary("add", result, self.number(start))
        return result

    # ---- shapes --------------------------------------------------------------------------

    def tile(self, value: Any) -> Node:
        """A tile; a known number becomes one."""
        if isinstance(value, Known):
            return self.build.convert(value, self.build.same(dtypes.of_constant(self.build.agreed(value))))
        if isinstance(value, Node) and value.type is not None:
            return value
        raise self.build.refuse("this is no tile", "pass a tile")

    def do_reshape(self, x: Any, shape: Any) -> Node:
        """The same elements in another shape; one extent may be -1."""
        node = self.tile(x)
        assert node.type is not None
        items = shape.items if isinstance(shape, Items) else (shape,)
        if any(isinstance(i, Known) and -1 in i.lanes for i in items):
            rest = [self.dim(i) for i in items if not (isinstance(i, Known) and -1 in i.lanes)]
            total = [math.prod(d.lanes[lane] for d in node.type.shape) for lane in range(self.build.lanes)]
            free = tuple(total[lane] // math.prod(d.lanes[lane] for d in rest) for lane in range(self.build.lanes))
            known = next((d for d in node.type.shape if d.lanes == free), None)
            if known is None:
                known = self.dim(Known(free, None, "?" if len(set(free)) > 1 else None))
            dims = iter(rest)
            return self.build.reshape(
                node, tuple(known if isinstance(i, Known) and -1 in i.lanes else next(dims) for i in items)
            )
        return self.build.reshape(node, tuple(self.dim(i) for i in items))

    def do_broadcast_to(self, x: Any, shape: Any) -> Node:
        """Repeat along extents of 1."""
        return self.build.broadcast(self.tile(x), self.shape(shape))

    def do_expand_dims(self, x: Any, axis: Any) -> Node:
        """A new axis of extent 1."""
        node = self.tile(x)
        assert node.type is not None
        place = self.build.agreed(axis)
        place += len(node.type.shape) + 1 if place < 0 else 0
        one = Dim("1", (1,) * self.build.lanes)
        return self.build.reshape(node, (*node.type.shape[:place], one, *node.type.shape[place:]))

    def new_axes(self, x: Node, parts: list[ast.expr]) -> Node:
        """`x[:, None]`: full slices and new axes."""
        assert x.type is not None
        old, shape = list(x.type.shape), []
        for part in parts:
            match part:
                case ast.Constant(value=None):
                    shape.append(Dim("1", (1,) * self.build.lanes))
                case ast.Slice(lower=None, upper=None, step=None) if old:
                    shape.append(old.pop(0))
                case _:
                    raise self.build.refuse("only `:` and `None` index a tile", "use ct.extract or ct.reshape")
        return self.build.reshape(x, (*shape, *old))

    def do_transpose(self, x: Any, axis0: Any, axis1: Any) -> Node:
        """Two axes exchanged."""
        rank = len(self.tile(x).type.shape)  # type: ignore[union-attr]
        pair = [self.build.agreed(a) for a in (axis0, axis1)]
        first, second = (0, 1) if pair == [None, None] and rank == 2 else (pair[0] % rank, pair[1] % rank)
        axes = list(range(rank))
        axes[first], axes[second] = axes[second], axes[first]
        return self.do_permute(x, Items(tuple(Known((axis,) * self.build.lanes) for axis in axes)))

    def do_permute(self, x: Any, axes: Any) -> Node:
        """Axes in another order."""
        node = self.tile(x)
        assert node.type is not None
        order = [self.build.agreed(axis) for axis in axes.items]
        order = [axis % len(node.type.shape) for axis in order]
        shape = tuple(node.type.shape[axis] for axis in order)
        return self.build.add("permute", TileType(node.type.dtype, shape), node, order=tuple(order))

    def do_item(self, x: Any) -> Node:
        """A tile of one element as a scalar."""
        return self.build.reshape(self.tile(x), ())

    def do_static_assert(self, condition: Any, message: Any) -> Known:
        """A promise about constants that the entry relies on."""
        if isinstance(condition, Known) and condition.source is not None:
            self.build.agreed(Known(tuple(bool(v) for v in condition.lanes), None, f"bool({condition.source})"))
        return Known((None,) * self.build.lanes)

    # ---- reductions ----------------------------------------------------------------------

    def do_sum(self, x: Any, axis: Any, keepdims: Any, **mode: Any) -> Node:
        """Sum along axes."""
        return self._reduce("sum", x, axis, keepdims, mode)

    def do_prod(self, x: Any, axis: Any, keepdims: Any, **mode: Any) -> Node:
        """Product along axes."""
        return self._reduce("prod", x, axis, keepdims, mode)

    def do_max(self, x: Any, axis: Any, keepdims: Any, **mode: Any) -> Node:
        """Maximum along axes."""
        return self._reduce("max", x, axis, keepdims, mode)

    def do_min(self, x: Any, axis: Any, keepdims: Any, **mode: Any) -> Node:
        """Minimum along axes."""
        return self._reduce("min", x, axis, keepdims, mode)

    def _reduce(self, fn: str, x: Any, axis: Any, keepdims: Any, mode: dict[str, Any]) -> Node:
        if self.modes(mode):
            raise Limit(what="a reduction with rounding, flush or NaN modes").refuse(
                self.build.place, "leave the modes out"
            )
        node = self.tile(x)
        assert node.type is not None
        if self.build.categories(node.type.dtype) is Category.BOOLEAN:
            node = self.build.convert(node, self.build.same("i32"))
        assert node.type is not None
        shape, rank = node.type.shape, len(node.type.shape)
        given = axis.items if isinstance(axis, Items) else (axis,)
        axes = [self.build.agreed(a) for a in given]
        places = sorted({a % rank for a in axes} if axes != [None] else set(range(rank)))
        for done, place in enumerate(places):
            left = list(node.type.shape)
            left.pop(place - done)
            node = self.build.add("reduce", TileType(node.type.dtype, tuple(left)), node, fn=fn, axis=place - done)
            assert node.type is not None
        if not self.build.agreed(keepdims):
            return node
        one = Dim("1", (1,) * self.build.lanes)
        return self.build.reshape(node, tuple(one if i in places else d for i, d in enumerate(shape)))

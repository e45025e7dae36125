"""Builds the operations of one entry, with the conversions that the source language makes silently."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from farm.recipes.cutile_rs.kernel import dtypes
from farm.recipes.cutile_rs.kernel.dtypes import Category
from farm.recipes.cutile_rs.kernel.model import Block, Dim, DType, Known, Node, TileType
from farm.recipes.cutile_rs.kernel.refusal import Refusal, Split

#: Binary operations on numbers, for constants.
FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "cdiv": lambda x, y: -((-x) // y),
    "truediv": operator.truediv,
    "mod": operator.mod,
    "pow": operator.pow,
    "max": max,
    "min": min,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
#: The same as source and Rust operators.
SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY_FOLD: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg, "abs": abs, "exp": math.exp, "exp2": lambda x: 2**x, "log": math.log,
    "log2": math.log2, "sqrt": math.sqrt, "rsqrt": lambda x: x**-0.5, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "floor": math.floor,
    "ceil": math.ceil, "invert": operator.invert,
}  # fmt: skip

Operand = Node | Known


class Builder:
    """Appends operations to the current block; every method is told the source place it works for."""

    def __init__(self, lanes: int, generics: dict[tuple[str, ...], tuple[str, str]]) -> None:
        self.lanes = lanes
        self.generics = generics  #: by the element type in each lane: Rust generic, array it is taken from
        self.block = Block()
        self.guards: dict[str, None] = {}  #: source conditions that the entry relies on
        self.place: ast.AST = ast.Pass()

    def refuse(self, message: str, advice: str) -> Refusal:
        """A refusal at the current place."""
        return Refusal(self.place, message, advice)

    def add(self, op: str, type_: TileType | None, *operands: Node, **attrs: Any) -> Node:
        """A new operation at the end of the current block."""
        node = Node(op, type_, operands, attrs, place=self.place)
        self.block.nodes.append(node)
        return node

    # ---- element types -------------------------------------------------------------------

    def dtype(self, lanes: tuple[str, ...]) -> DType:
        """The element type that is `lanes[i]` in lane i. Raises Split when no Rust name stands for it."""
        if len(set(lanes)) == 1:
            return DType(lanes[0], lanes)
        if lanes in self.generics:
            return DType(self.generics[lanes][0], lanes)
        raise self.split_by_dtype()

    def same(self, name: str) -> DType:
        """A concrete element type."""
        return DType(name, (name,) * self.lanes)

    def categories(self, dtype: DType) -> Category:
        """The kind of numbers of `dtype`. Raises Split when the lanes disagree."""
        kinds = {dtypes.category(lane) for lane in dtype.lanes}
        if len(kinds) > 1:
            raise self.split_by_dtype()
        return kinds.pop()

    def split_by_dtype(self) -> Split:
        """The wish for one entry per element type."""
        per_lane = (
            " and ".join(f"dtype({array}) == {kinds[lane]!r}" for kinds, (_, array) in self.generics.items())
            for lane in range(self.lanes)
        )
        return Split(self.place, tuple(per_lane))

    def promoted(self, left: Operand, right: Operand, *, to_float: bool = False) -> DType:
        """The common element type of two operands."""
        lanes = []
        for lane in range(self.lanes):
            match left, right:
                case Node(), Node():
                    found = dtypes.promote(left.type.dtype.lanes[lane], right.type.dtype.lanes[lane])  # type: ignore[union-attr]
                case Node(), Known():
                    found = dtypes.promote_constant(left.type.dtype.lanes[lane], right.lanes[lane])  # type: ignore[union-attr]
                case Known(), Node():
                    found = dtypes.promote_constant(right.type.dtype.lanes[lane], left.lanes[lane])  # type: ignore[union-attr]
                case _:
                    a, b = dtypes.of_constant(left.lanes[lane]), dtypes.of_constant(right.lanes[lane])  # type: ignore[union-attr]
                    found = dtypes.promote(a, b)
            if found is None:
                raise self.refuse("these element types have no common type", "convert one of them with ct.astype")
            if to_float and dtypes.category(found) is not Category.FLOAT:
                found = "f32"
            lanes.append(found)
        codes = {o.type.dtype.lanes: o.type.dtype for o in (left, right) if isinstance(o, Node) and o.type}
        return codes.get(tuple(lanes)) or self.dtype(tuple(lanes))

    # ---- constants -----------------------------------------------------------------------

    def constant(self, known: Known, dtype: DType, shape: tuple[Dim, ...] = ()) -> Node:
        """A tile (or scalar) of one known number."""
        for value in known.lanes:
            if not isinstance(value, (int, float)):
                raise self.refuse(f"{value!r} is no number", "use a number here")
        if known.code is None:
            self.agreed(known)
        return self.add("constant", TileType(dtype, shape), value=known)

    def agreed(self, known: Known) -> Any:
        """The one value of all lanes, which the entry relies on from now on. Raises Split when they differ."""
        first = known.lanes[0]
        if any(_different(first, other) for other in known.lanes):
            source = known.source or "?"
            raise Split(self.place, tuple(f"{source} == {value!r}" for value in known.lanes))
        if known.source is not None:
            self.guards[f"{known.source} == {first!r}"] = None
        return first

    def fold(self, fn: str, left: Known, right: Known) -> Known:
        """A binary operation on known values."""
        try:
            lanes = tuple(FOLD[fn](a, b) for a, b in zip(left.lanes, right.lanes, strict=True))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self.refuse(f"this constant cannot be computed: {error}", "correct the expression") from None
        return Known(lanes, self._code(fn, left, right, lanes), _source(fn, left, right))

    def _code(self, fn: str, left: Known, right: Known, lanes: tuple[Any, ...]) -> str | None:
        if left.code is None and right.code is None:
            return None
        sign = {"floordiv": "/"}.get(fn, SIGNS.get(fn))
        plain = fn in ("add", "sub", "mul", "floordiv", *COMPARISONS) and all(
            type(v) is int and -(1 << 31) <= v < 1 << 31 for v in (*left.lanes, *right.lanes)
        )
        fits = all(isinstance(v, bool) or -(1 << 31) <= v < 1 << 31 for v in lanes)
        if not plain or not fits or (fn == "floordiv" and min(*left.lanes, *right.lanes) < 0):
            return None
        sides = [k.code or self._literal(k) for k in (left, right)]
        return None if None in sides else f"({sides[0]} {sign} {sides[1]})"

    @staticmethod
    def _literal(known: Known) -> str | None:
        if len(set(known.lanes)) == 1 and known.source is None:
            return str(known.lanes[0])
        return None

    # ---- shapes --------------------------------------------------------------------------

    def reshape(self, x: Node, shape: tuple[Dim, ...]) -> Node:
        """`x` with another shape of as many elements; itself when the shape is the same."""
        assert x.type is not None
        if shape == x.type.shape:
            return x
        return self.add("reshape", TileType(x.type.dtype, shape), x)

    def broadcast(self, x: Node, shape: tuple[Dim, ...]) -> Node:
        """`x` repeated along extents of 1 until it has `shape`."""
        assert x.type is not None
        if x.type.shape == shape:
            return x
        if x.op == "constant":
            self.forget(x)
            return self.add("constant", TileType(x.type.dtype, shape), value=x.attrs["value"])
        if not x.type.shape and not all(dim.one for dim in shape):
            return self.add("splat", TileType(x.type.dtype, shape), x)
        ones = (Dim("1", (1,) * self.lanes),) * (len(shape) - len(x.type.shape))
        x = self.reshape(x, ones + x.type.shape)
        assert x.type is not None
        if x.type.shape == shape:
            return x
        for have, want in zip(x.type.shape, shape, strict=True):
            if any(h not in (1, w) for h, w in zip(have.lanes, want.lanes, strict=True)):
                raise self.refuse("this shape cannot be broadcast to that one", "make the extents equal or 1")
        return self.add("broadcast", TileType(x.type.dtype, shape), x)

    def forget(self, node: Node) -> None:
        """Take a constant that was replaced out of the current block again."""
        if self.block.nodes and self.block.nodes[-1] is node:
            self.block.nodes.pop()

    def common_shape(self, *shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The shape that all of them broadcast to."""
        rank = max(len(shape) for shape in shapes)
        one = Dim("1", (1,) * self.lanes)
        result = []
        for axis in range(rank):
            dim = one
            for shape in shapes:
                index = axis - (rank - len(shape))
                dim = self._wider(dim, shape[index] if index >= 0 else one)
            result.append(dim)
        return tuple(result)

    def _wider(self, a: Dim, b: Dim) -> Dim:
        if a.lanes == b.lanes:
            if a.code != b.code and not a.code.isdigit() and not b.code.isdigit():
                raise self.refuse(
                    f"{a.code} and {b.code} are equal in every traced case but not by the source",
                    "use one constant parameter for both tile extents",
                )
            return b if a.code.isdigit() else a
        if all(x in (1, y) for x, y in zip(a.lanes, b.lanes, strict=True)):
            return b
        if all(y in (1, x) for x, y in zip(a.lanes, b.lanes, strict=True)):
            return a
        raise self.refuse("these shapes cannot be broadcast together", "make the extents equal or 1")

    # ---- conversions ---------------------------------------------------------------------

    def convert(self, x: Operand, dtype: DType) -> Node:
        """`x` with another element type; itself when it has it already."""
        if isinstance(x, Known):
            return self.constant(self._number(x, dtype), dtype)
        assert x.type is not None
        if x.type.dtype == dtype:
            return x
        if x.op == "constant" and x.type.shape == ():
            self.forget(x)
            return self.constant(self._number(x.attrs["value"], dtype), dtype, x.type.shape)
        kinds = (self.categories(x.type.dtype), self.categories(dtype))
        return self.add("convert", TileType(dtype, x.type.shape), x, kinds=kinds)

    def _number(self, known: Known, dtype: DType) -> Known:
        """`known` as the kind of number that `dtype` holds."""
        kind = self.categories(dtype)
        make: Callable[[Any], Any] = {Category.FLOAT: float, Category.INTEGER: int, Category.BOOLEAN: bool}[kind]
        for value in known.lanes:
            if not isinstance(value, (int, float)):
                raise self.refuse(f"{value!r} is no number", "use a number here")
        lanes = tuple(make(value) for value in known.lanes)
        return Known(lanes, known.code, known.source)

    def fitted(self, x: Operand, dtype: DType, shape: tuple[Dim, ...]) -> Node:
        """`x` converted and broadcast."""
        return self.broadcast(self.convert(x, dtype), shape)

    # ---- arithmetic ----------------------------------------------------------------------

    def binary(self, fn: str, left: Operand, right: Operand, **mode: Any) -> Operand:
        """An arithmetic operation with promotion and broadcasting."""
        if isinstance(left, Known) and isinstance(right, Known):
            return self.fold(fn, left, right)
        dtype = self.promoted(left, right, to_float=fn == "truediv")
        kind = self.categories(dtype)
        if kind is Category.BOOLEAN and fn not in ("and", "or", "xor"):
            raise self.refuse("arithmetic on booleans", "convert to an integer type first")
        if kind is Category.FLOAT and fn in ("and", "or", "xor", "shl", "shr"):
            raise self.refuse("a bitwise operation on floats", "use ct.bitcast first")
        shape = self.common_shape(*(o.type.shape for o in (left, right) if isinstance(o, Node) and o.type))
        a, b = self.fitted(left, dtype, shape), self.fitted(right, dtype, shape)
        if a.op == b.op == "constant" and fn in FOLD:
            known = self.fold(fn, a.attrs["value"], b.attrs["value"])
            return self.constant(known, dtype, shape)
        if fn in ("mod",):
            return self._floor_modulo(a, b)
        return self.add("binary", TileType(dtype, shape), a, b, fn=fn, **mode)

    def _floor_modulo(self, a: Node, b: Node) -> Node:
        """Python's `%`, whose sign is the divisor's: the hardware's remainder, corrected."""
        assert a.type is not None
        rest = self.add("binary", a.type, a, b, fn="rem")
        zero = Known((0,) * self.lanes)
        less = self.compare("lt", rest, zero)
        mixed = self.add("binary", less.type, less, self.compare("lt", b, zero), fn="xor")
        wrong = self.add("binary", less.type, mixed, self.compare("ne", rest, zero), fn="and")
        return self.add("select", a.type, wrong, self.add("binary", a.type, rest, b, fn="add"), rest)

    def compare(self, fn: str, left: Operand, right: Operand) -> Node:
        """A comparison with promotion and broadcasting."""
        result = self.compared(fn, left, right)
        assert isinstance(result, Node)
        return result

    def compared(self, fn: str, left: Operand, right: Operand) -> Operand:
        """Like `compare`, also between two known values."""
        if isinstance(left, Known) and isinstance(right, Known):
            return self.fold(fn, left, right)
        dtype = self.promoted(left, right)
        shape = self.common_shape(*(o.type.shape for o in (left, right) if isinstance(o, Node) and o.type))
        a, b = self.fitted(left, dtype, shape), self.fitted(right, dtype, shape)
        kind = self.categories(dtype)
        return self.add("compare", TileType(self.same("bool"), shape), a, b, fn=fn, kind=kind)

    def unary(self, fn: str, x: Operand, **mode: Any) -> Operand:
        """A function of one tile; integers become floats where the function needs them."""
        if isinstance(x, Known):
            lanes = tuple(UNARY_FOLD[fn](v) for v in x.lanes)
            code = f"(-{x.code})" if fn == "neg" and x.code else None
            source = None if x.source is None else f"(-{x.source})" if fn == "neg" else None
            if x.source is not None and source is None:
                self.agreed(x)
            return Known(lanes, code, source)
        assert x.type is not None
        kind = self.categories(x.type.dtype)
        if fn == "neg" and kind is Category.BOOLEAN:
            x = self.convert(x, self.same("i32"))
        elif fn not in ("neg", "abs", "invert") and kind is not Category.FLOAT:
            if fn in ("floor", "ceil"):
                raise self.refuse(f"ct.{fn} of an integer", "remove it")
            x = self.convert(x, self.same("f32"))
        assert x.type is not None
        kind = self.categories(x.type.dtype)
        if x.op == "constant":
            known = x.attrs["value"]
            folded = tuple(UNARY_FOLD[fn](v) for v in known.lanes)
            if known.source is None:
                return self.constant(Known(folded), x.type.dtype, x.type.shape)
        return self.add("unary", x.type, x, fn=fn, kind=kind, **mode)

    def where(self, condition: Operand, x: Operand, y: Operand) -> Node:
        """`condition ? x : y` with promotion and broadcasting."""
        dtype = self.promoted(x, y)
        nodes = [o for o in (condition, x, y) if isinstance(o, Node) and o.type]
        shape = self.common_shape((), *(o.type.shape for o in nodes if o.type))
        mask = self.fitted(condition, self.same("bool"), shape)
        return self.add(
            "select", TileType(dtype, shape), mask, self.fitted(x, dtype, shape), self.fitted(y, dtype, shape)
        )


def _different(a: Any, b: Any) -> bool:
    same_nan = isinstance(a, float) and isinstance(b, float) and a != a and b != b
    return type(a) is not type(b) or (a != b and not same_nan)


def _source(fn: str, left: Known, right: Known) -> str | None:
    if left.source is None and right.source is None:
        return None
    sides = [k.source or repr(k.lanes[0]) for k in (left, right)]
    if fn == "cdiv":
        return f"(-((-{sides[0]}) // {sides[1]}))"
    if fn in ("max", "min"):
        return f"{fn}({sides[0]}, {sides[1]})"
    return f"({sides[0]} {SIGNS[fn]} {sides[1]})"

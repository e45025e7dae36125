"""Spells single operations as Rust expressions."""

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from farm.recipes.cutile_rs.kernel import helpers
from farm.recipes.cutile_rs.kernel.build import SIGNS
from farm.recipes.cutile_rs.kernel.divisibility import Divisors
from farm.recipes.cutile_rs.kernel.dtypes import Category
from farm.recipes.cutile_rs.kernel.helpers import const_shape, tile_type
from farm.recipes.cutile_rs.kernel.model import Array, Dim, Known, Layout, Node, TileType
from farm.recipes.cutile_rs.kernel.names import Names, snake
from farm.recipes.cutile_rs.kernel.refusal import Limit, Refusal

INDENT = "    "
#: Longest expression that is written inside another one.
INLINE_WIDTH = 48
PREDICATES = {
    "eq": "Equal", "ne": "NotEqual", "lt": "LessThan", "le": "LessThanOrEqual", "gt": "GreaterThan",
    "ge": "GreaterThanOrEqual",
}  # fmt: skip
#: Operations that may be written inside another expression.
INLINABLE = ("binary", "unary", "fma", "compare", "select")


#: Operations that give a tile also where one number is meant.
GIVING_TILES = ("gather", "load", "reduce", "reshape", "permute", "broadcast", "select", "convert")


@dataclass
class Spelling:
    """What an entry's text needs while it is written, and how each operation is spelled."""

    names: Names
    layouts: dict[str, Layout]  #: by array
    divisors: Divisors
    apart: Callable[[Node], Exception]  #: what to raise where lanes need texts of their own
    elements: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)  #: generics by array and steps
    helpers: dict[str, str] = field(default_factory=dict)  #: text by name
    lines: list[str] = field(default_factory=list)
    depth: int = 2
    stores: dict[str, int] = field(default_factory=dict)
    ordered: dict[str, bool] = field(default_factory=dict)  #: arrays whose accesses form a chain
    uses: dict[Node, int] = field(default_factory=dict)
    inline: dict[Node, str] = field(default_factory=dict)
    scopes: list[dict[tuple[str, str], str]] = field(default_factory=lambda: [{}])  #: constants defined so far
    views: dict[str, str] = field(default_factory=dict)  #: Rust name of an array's tensor view
    partitions: dict[tuple[str, tuple[str, ...], str, int], str] = field(default_factory=dict)
    loads: dict[tuple[str, tuple[str, ...], str], list[Node]] = field(default_factory=dict)  #: by what they read

    def line(self, text: str) -> None:
        """One more line at the current depth."""
        self.lines.append(INDENT * self.depth + text if text else "")

    def partition(self, node: Node) -> str:
        """The partition view that a tile access goes through."""
        raise NotImplementedError

    def _place(self, node: Node) -> str:
        return f"[{', '.join(self.number(item) for item in node.attrs['index'])}]"

    def _modes(self, node: Node) -> list[str]:
        latency = node.attrs["latency"]
        tma = "Disabled" if node.attrs["tma"] is False else "Enabled"
        return [
            "ordering::Weak",
            "scope::TileBlock",
            "None" if latency is None else f"Some({latency})",
            f"tma::{tma}",
        ]

    def access_call(self, node: Node, dims: tuple[Dim, ...], token: str, *, ordered: bool = False) -> str:
        """The call of a gather or scatter helper."""
        raise NotImplementedError

    # ---- expressions ---------------------------------------------------------------------

    def type(self, type_: TileType | None) -> str:
        """The Rust type of a result."""
        assert type_ is not None
        if not type_.shape and type_.dtype.code in ("i32", "bool"):
            return type_.dtype.code
        return tile_type(type_.dtype.code, tuple(dim.code for dim in type_.shape))

    def value(self, node: Node) -> str:
        """A result as an operand."""
        if node in self.inline:
            return self.inline[node]
        if node.op in ("extent", "stride"):
            return self.names.measure(node)
        if node.op == "param":
            return self.names.param(node.attrs["param"])
        return self.names.of(node)

    def tile_value(self, node: Node) -> str:
        """A result as an operand where a tile is needed."""
        if node.type and not node.type.shape and node.type.dtype.code in ("i32", "bool"):
            text, type_ = f"scalar_to_tile({self.value(node)})", tile_type(node.type.dtype.code, ())
            for scope in self.scopes:
                if (text, type_) in scope:
                    return scope[text, type_]
            name = self.scopes[-1][text, type_] = self.names.fresh(f"{snake(node.name or 'scalar')}_tile")
            self.line(f"let {name}: {type_} = {text};")
            return name
        return self.value(node)

    def number(self, item: Node | Known) -> str:
        """A scalar index."""
        if isinstance(item, Node):
            return self.value(item)
        return item.code or f"{item.lanes[0]}i32"

    def expression(self, node: Node) -> str:
        """The expression that computes a node."""
        method = getattr(self, f"_{node.op}", None)
        if method is None:
            raise Refusal(node.place, f"no Rust for {node.op}", "write it differently")  # type: ignore[arg-type]
        text: str = method(node)
        return text

    def _block(self, node: Node) -> str:
        return f"get_tile_block_id().{node.attrs['axis']}"

    def _blocks(self, node: Node) -> str:
        return f"get_num_tile_blocks().{node.attrs['axis']}"

    def _scalar(self, node: Node) -> str:
        return f"scalar_to_tile({self.names.param(node.attrs['param'])})"

    def _iota(self, node: Node) -> str:
        return f"iota({self._shape(node)})"

    def _shape(self, node: Node) -> str:
        assert node.type is not None
        return const_shape(tuple(dim.code for dim in node.type.shape))

    def _constant(self, node: Node) -> str:
        known: Known = node.attrs["value"]
        assert node.type is not None
        element, scalar = node.type.dtype.code, not node.type.shape
        value = known.lanes[0]
        if known.code is not None:
            if element == "i32":
                code = known.code.removeprefix("(").removesuffix(")") if known.code.count("(") == 1 else known.code
                return known.code if scalar else f"broadcast_scalar({code}, {self._shape(node)})"
            count = self.names.fresh("count")
            shape = tuple(dim.code for dim in node.type.shape)
            if node.type.dtype.code in ("u64", "i64"):
                text = f"broadcast_scalar({known.code}, {self._shape(node)})"
                self.line(f"let {count}: {tile_type('i32', shape)} = {text};")
                return f"exti({count})"
            self.line(
                f"let {count}: {tile_type('i32', shape)} = broadcast_scalar({known.code}, {self._shape(node)});"
            )
            return f"convert_tile({count})"
        if element == "bool":
            text = "true" if value else "false"
            return text if scalar else f"broadcast_scalar({text}, {self._shape(node)})"
        if element == "i32" and scalar:
            return f"{int(value)}i32"
        if element in ("i32", "i64", "u64", "i16", "i8", "u8"):
            return f"constant({int(value)}{element}, {self._shape(node)})"
        if element in ("f32", "f64"):
            return f"constant({float_literal(float(value), element)}, {self._shape(node)})"
        if value == 0 and math.copysign(1, float(value)) > 0:
            return f"constant({element}::ZERO, {self._shape(node)})"
        shape = tuple(dim.code for dim in node.type.shape)
        typed = (f"constant({float_literal(float(value))}, {self._shape(node)})", tile_type("f32", shape))
        wide = next((scope[typed] for scope in self.scopes if typed in scope), None)
        if wide is None:
            wide = self.scopes[-1][typed] = self.names.fresh(f"{constant_name(float(value))}_f32")
            self.line(f"let {wide}: {typed[1]} = {typed[0]};")
        return f"convert_tile({wide})"

    def _convert(self, node: Node) -> str:
        source, target = node.attrs["kinds"]
        value = self.tile_value(node.operands[0])
        if Category.BOOLEAN in (source, target):
            return self._boolean(node, source, target, value)
        if source is target is Category.INTEGER:
            assert node.type is not None
            assert node.operands[0].type is not None
            old, new = node.operands[0].type.dtype.code, node.type.dtype.code
            bits = helpers_bits(old), helpers_bits(new)
            if bits[0] < bits[1] and not node.type.shape and (old, new) == ("i32", "u64"):
                self.helpers.setdefault("widen_0d", helpers.scalar_index())
                return f"widen_0d({self.value(node.operands[0])})"
            if bits[0] < bits[1] and (node.type.shape or old != "i32"):
                return f"exti({value})"
            raise _limit(node, f"a conversion from {old} to {new}", "keep the wider type")
        return f"convert_tile({value})"

    def _boolean(self, node: Node, source: Category, target: Category, value: str) -> str:
        if source is Category.BOOLEAN and target is Category.INTEGER:
            return f"exti({value})"
        raise Refusal(node.place, "no rule for this conversion of booleans", "use ct.where")  # type: ignore[arg-type]

    def _reshape(self, node: Node) -> str:
        return f"reshape({self.tile_value(node.operands[0])}, {self._shape(node)})"

    def _broadcast(self, node: Node) -> str:
        return f"broadcast({self.tile_value(node.operands[0])}, {self._shape(node)})"

    def _splat(self, node: Node) -> str:
        x = node.operands[0]
        assert node.type is not None
        assert x.type is not None
        if x.type.dtype.code in ("i32", "bool"):
            return f"broadcast_scalar({self.value(x)}, {self._shape(node)})"
        ones = const_shape(("1",) * len(node.type.shape))
        return f"{self.value(x)}.reshape({ones}).broadcast({self._shape(node)})"

    def _num_tiles(self, node: Node) -> str:
        return f"num_tiles(&{self.partition(node)}, {node.attrs['axis']}i32)"

    def _widen(self, node: Node) -> str:
        assert node.type is not None
        rank = len(node.type.shape)
        self.helpers.setdefault(f"widen_{rank}d", helpers.widen(rank))
        return f"widen_{rank}d({self.value(node.operands[0])}, {self._shape(node)})"

    def _permute(self, node: Node) -> str:
        order = ", ".join(str(axis) for axis in node.attrs["order"])
        return f"permute({self.value(node.operands[0])}, const_array![{order}])"

    def _reduce(self, node: Node) -> str:
        return f"reduce_{node.attrs['fn']}({self.value(node.operands[0])}, {node.attrs['axis']}i32)"

    def _select(self, node: Node) -> str:
        return f"select({', '.join(self.tile_value(operand) for operand in node.operands)})"

    def _gather(self, node: Node) -> str:
        assert node.type is not None
        return self.access_call(node, node.type.shape, "token")

    def _load(self, node: Node) -> str:
        tiles = self.partition(node)
        return f"load_view_tko({', '.join([f'&{tiles}', self._place(node), *self._modes(node)])})"

    def _compare(self, node: Node) -> str:
        a, b = node.operands
        fn = node.attrs["fn"]
        assert a.type is not None
        if not a.type.shape and a.type.dtype.code == "i32":
            return f"{self._operand(a)} {SIGNS[fn]} {self._operand(b)}"
        if node.attrs["kind"] is Category.FLOAT:
            order = "Unordered" if node.attrs.get("unordered") or fn == "ne" else "Ordered"
            return f"cmpf({self.value(a)}, {self.value(b)}, predicate::{PREDICATES[fn]}, cmp_ordering::{order})"
        return f"cmpi({self.tile_value(a)}, {self.tile_value(b)}, predicate::{PREDICATES[fn]})"

    def _fma(self, node: Node) -> str:
        a, b, c = (self.value(operand) for operand in node.operands)
        return f"fma({a}, {b}, {c}, {self._rounding(node)}, {self._ftz(node)})"

    def _unary(self, node: Node) -> str:
        fn, x = node.attrs["fn"], self.value(node.operands[0])
        if node.attrs["kind"] is not Category.FLOAT:
            if fn == "neg":
                raise _limit(node, "the negation of integers", "write 0 - x")
            if fn == "abs":
                return f"absi({x})"
            if fn == "invert":
                return self._invert(node)
        match fn:
            case "neg" | "abs":
                return f"{fn}f({x})"
            case "exp2" | "rsqrt":
                return f"{fn}({x}, {self._ftz(node)})"
            case "sqrt":
                return f"sqrt({x}, {self._rounding(node)}, {self._ftz(node)})"
            case _:
                return f"{fn}({x})"

    def _invert(self, node: Node) -> str:
        x = node.operands[0]
        assert node.type is not None
        if node.type.dtype.code == "bool":
            if not node.type.shape:
                return f"!{self._operand(x)}"
            return f"{self._operand(x)} ^ broadcast_scalar(true, {self._shape(node)})"
        return f"{self._operand(x)} ^ constant(-1{node.type.dtype.code}, {self._shape(node)})"

    def _binary(self, node: Node) -> str:
        fn = node.attrs["fn"]
        a, b = node.operands
        assert node.type is not None
        code = node.type.dtype.code
        floating = code not in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool")
        moded = any(node.attrs.get(mode) for mode in ("rounding", "ftz", "nan"))
        if fn in ("max", "min"):
            if not floating:
                scalar = not node.type.shape
                return (
                    f"{fn}({self.value(a)}, {self.value(b)})"
                    if scalar
                    else f"{fn}i({self.value(a)}, {self.value(b)})"
                )
            nan = "Enabled" if node.attrs.get("nan") else "Disabled"
            return f"{fn}f({self.value(a)}, {self.value(b)}, nan::{nan}, {self._ftz(node)})"
        if fn == "truediv" and node.attrs.get("rounding") == "Approx" and node.attrs.get("ftz"):
            return f"true_div({self.value(a)}, {self.value(b)})"
        if fn == "truediv" and node.attrs.get("rounding") in ("Approx", "Full"):
            what = f"a division rounded {node.attrs['rounding'].lower()} without flush to zero"
            raise Limit(what=what).refuse(node.place, "set flush_to_zero as well")  # type: ignore[arg-type]
        if moded:
            name = {"add": "addf", "sub": "subf", "mul": "mulf", "truediv": "divf"}[fn]
            return f"{name}({self.value(a)}, {self.value(b)}, {self._rounding(node)}, {self._ftz(node)})"
        if fn == "floordiv" and floating:
            return f"floor({self._operand(a)} / {self._operand(b)})"
        if fn == "cdiv":
            if node.type.shape:
                raise _limit(node, "a ceiling division of tiles", "write (a + b - 1) // b")
            return f"ceil_div({self.value(a)}, {self.value(b)})"
        if fn in ("pow", "atan2"):
            return f"{fn}({self.value(a)}, {self.value(b)})"
        if fn in ("shl", "shr"):
            if fn == "shl":
                raise _limit(node, "a left shift", "multiply by a power of two")
            return f"shri({self.value(a)}, {self.value(b)})"
        sign = {"floordiv": "/", "rem": "%"}.get(fn) or SIGNS[fn]
        return f"{self._operand(a)} {sign} {self._operand(b)}"

    def _operand(self, node: Node) -> str:
        text = self.value(node)
        return (
            f"({text})"
            if node in self.inline and node.op in ("binary", "compare") and " " in text and not _call_like(text)
            else text
        )

    def _rounding(self, node: Node) -> str:
        return f"rounding::{node.attrs.get('rounding') or 'NearestEven'}"

    def _ftz(self, node: Node) -> str:
        return "ftz::Enabled" if node.attrs.get("ftz") else "ftz::Disabled"


def _limit(node: Node, what: str, advice: str) -> Refusal:
    return Limit(what=what).refuse(node.place or ast.Pass(), advice)


def of_array(node: Node, array: str) -> bool:
    found = node.attrs.get("array")
    return isinstance(found, Array) and found.name == array


def described(kind: str, known: list[str], dynamic: list[str]) -> tuple[str, str]:
    """Type and value of a shape or stride array, of which -1 marks what is given at run time."""
    dims = "{ [" + ", ".join(known) + "] }"
    return f"{kind}<{dims}>", f"{kind}::<{dims}> {{ dims: &[{', '.join(dynamic)}] }}"


def _call_like(text: str) -> bool:
    return text.endswith(")") and text.split("(")[0].isidentifier()


def argument_index(loop: Node, argument: Node) -> int:
    """Position of a carried value among a loop's results."""
    assert loop.body is not None
    return loop.body.arguments.index(argument)


def helpers_bits(code: str) -> int:
    """Bits of a concrete integer type."""
    return int(code[1:]) if code[1:].isdigit() else 1


def float_literal(value: float, element: str = "f32") -> str:
    """A Rust literal."""
    if value != value:
        return f"{element}::NAN"
    if math.isinf(value):
        return f"{element}::INFINITY" if value > 0 else f"{element}::NEG_INFINITY"
    text = repr(float(value))
    return f"{text}{element}"


def constant_name(value: float) -> str:
    """A readable name for a constant: `one`, `half`, `c_0_7978`."""
    known = {0.0: "zero", 1.0: "one", 2.0: "two", 0.5: "half", -1.0: "minus_one"}
    if value in known:
        return known[value]
    digits = f"{abs(value):.4g}".replace(".", "_").replace("-", "m").replace("+", "").replace("e", "e")
    return f"c_{digits}"

"""Prints the operations of an entry as Rust."""

import ast
import math
from dataclasses import dataclass, field

from farm.recipes.cutile_rs.kernel import helpers
from farm.recipes.cutile_rs.kernel.build import SIGNS
from farm.recipes.cutile_rs.kernel.dtypes import Category
from farm.recipes.cutile_rs.kernel.helpers import Access, const_shape, tile_type
from farm.recipes.cutile_rs.kernel.model import Array, Block, Dim, Known, Layout, Node, TileType
from farm.recipes.cutile_rs.kernel.names import Names
from farm.recipes.cutile_rs.kernel.passes import EFFECTS, READS, walk
from farm.recipes.cutile_rs.kernel.refusal import Limit, Refusal
from farm.recipes.cutile_rs.plan import ELEMENT_BYTES

INDENT = "    "
#: Longest expression that is written inside another one.
INLINE_WIDTH = 48
PREDICATES = {
    "eq": "Equal", "ne": "NotEqual", "lt": "LessThan", "le": "LessThanOrEqual", "gt": "GreaterThan",
    "ge": "GreaterThanOrEqual",
}  # fmt: skip
#: Operations that may be written inside another expression.
INLINABLE = ("binary", "unary", "fma", "compare", "select")


@dataclass
class Printer:
    """Writes one entry's body; collects the helper functions that it calls."""

    names: Names
    layouts: dict[str, Layout]  #: by array
    helpers: dict[str, str] = field(default_factory=dict)  #: text by name
    lines: list[str] = field(default_factory=list)
    depth: int = 2
    stores: dict[str, int] = field(default_factory=dict)
    ordered: dict[str, bool] = field(default_factory=dict)  #: arrays whose accesses form a chain
    uses: dict[Node, int] = field(default_factory=dict)
    inline: dict[Node, str] = field(default_factory=dict)
    scopes: list[dict[tuple[str, str], str]] = field(default_factory=lambda: [{}])  #: constants defined so far
    views: dict[str, str] = field(default_factory=dict)  #: Rust name of an array's tensor view
    partitions: dict[tuple[str, tuple[str, ...], str], str] = field(default_factory=dict)

    def body(self, root: Block) -> list[str]:
        """The body's lines."""
        self._survey(root)
        self._prologue(root)
        self.block(root)
        return self.lines

    def line(self, text: str) -> None:
        """One more line at the current depth."""
        self.lines.append(INDENT * self.depth + text if text else "")

    # ---- survey --------------------------------------------------------------------------

    def _survey(self, root: Block) -> None:
        for node in walk(root):
            for operand in node.operands:
                self.uses[operand] = self.uses.get(operand, 0) + 1
            for inner in (node.body, node.other):
                for result in inner.results if inner else ():
                    self.uses[result] = self.uses.get(result, 0) + 2
        loops = {inner for node in walk(root) if node.op in ("for", "if") and node.body for inner in walk(node.body)}
        loops |= {inner for node in walk(root) if node.other for inner in walk(node.other)}
        reads = {n.attrs["array"].name for n in walk(root) if n.op in READS}
        for node in walk(root):
            if node.op not in EFFECTS:
                continue
            name = node.attrs["array"].name
            self.stores[name] = self.stores.get(name, 0) + 1
            repeated = node in loops or self.stores[name] > 1
            self.ordered[name] = self.ordered.get(name, False) or repeated or name in reads
            if node.op == "store" and (name in reads or self.stores[name] > 1 or self._crossing(node, root)):
                raise Refusal(
                    node.place or root.nodes[0].place,  # type: ignore[arg-type]
                    f"{name} is written by tiles more than once, or read as well: cutile 0.2.0 has no way "
                    "to say in which order",
                    "use ct.gather and ct.scatter for this array",
                )

    @staticmethod
    def _crossing(store: Node, root: Block) -> bool:
        """Whether a tile store sits in a loop whose index it does not use."""
        for node in walk(root):
            if node.op == "for" and node.body and store in set(walk(node.body)):
                if store not in node.body.nodes or node.attrs["index"] not in store.operands:
                    return True
            if node.op == "if" and any(store in set(walk(b)) for b in (node.body, node.other) if b):
                return True
        return False

    def _prologue(self, root: Block) -> None:
        pointers = [n for n in walk(root) if n.op in ("gather", "scatter")]
        self.line("let token: Token = new_token_unordered();")
        for name, layout in self.layouts.items():
            if layout.viewed:
                self._view(name, next(n for n in walk(root) if _of(n, name)).attrs["array"], layout)
        for name, chained in self.ordered.items():
            if chained and any(n.attrs["array"].name == name for n in pointers):
                rust = self.names.array(name)
                self.line(f"let mut {rust}_token: Token = token;")
                if self._mixed(name, pointers):
                    self.line(f"let mut {rust}_written: Token = token;")
        for node in walk(root):
            if node.op in ("load", "store"):
                self._partition(node)

    @staticmethod
    def _mixed(name: str, accesses: list[Node]) -> bool:
        ops = {n.op for n in accesses if n.attrs["array"].name == name}
        return ops == {"gather", "scatter"}

    def _view(self, name: str, array: Array, layout: Layout) -> None:
        rust, element = self.names.array(name), array.dtype.code
        extents = ["1" if one else "-1" for one in layout.unit_extents]
        strides = ["1" if one else "-1" for one in layout.unit_strides]
        dims = [f"{rust}_dim{axis}" for axis, extent in enumerate(extents) if extent == "-1"]
        steps = [f"{rust}_stride{axis}" for axis, stride in enumerate(strides) if stride == "-1"]
        parts = {
            "base": (f"PointerTile<*mut {element}, {{ [] }}>", f"pointer_to_tile({rust})"),
            "shape": _described("Shape", extents, dims),
            "strides": _described("Array", strides, steps),
        }
        for part, (type_, text) in parts.items():
            self.line(f"let {rust}_{part}: {type_} = {text};")
        view = self.names.fresh(f"{rust}_view")
        self.views[name] = view
        self.line(f"let {view}: Tensor<{element}, {{ [{', '.join(extents)}] }}> =")
        self.line(f"{INDENT}unsafe {{ make_tensor_view({rust}_base, {rust}_shape, {rust}_strides, token) }};")

    def _partition(self, node: Node) -> str:
        array: Array = node.attrs["array"]
        dims = node.attrs["shape"] if node.op == "store" else node.type.shape  # type: ignore[union-attr]
        codes = tuple(dim.code for dim in dims)
        key = (array.name, codes, node.attrs["padding"] if node.op == "load" else "mut")
        if key not in self.partitions:
            rust, element = self.views[array.name], array.dtype.code
            name = self.names.fresh(f"{self.names.array(array.name)}_tiles")
            self.partitions[key] = name
            shape = const_shape(codes)
            if node.op == "store":
                self.line(f"let mut {name}: PartitionMut<{element}, {{ [{', '.join(codes)}] }}> =")
                self.line(f"{INDENT}unsafe {{ {rust}.partition_full_mut({shape}) }};")
            elif node.attrs["padding"] == "Zero":
                self.line(f"let {name}: Partition<{element}, {{ [{', '.join(codes)}] }}> = {rust}.partition({shape});")
            else:
                padding = node.attrs["padding"]
                self.line(f"let {name}: Partition<{element}, {{ [{', '.join(codes)}] }}> = make_partition_view(")
                for argument in (rust, shape, f"padding::{padding}", "dim_map::Identity", f"get_tensor_token({rust})"):
                    self.line(f"{INDENT}{argument},")
                self.line(");")
        return self.partitions[key]

    # ---- blocks --------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """All operations of a block."""
        for position, node in enumerate(block.nodes):
            if node.op == "for":
                self._loop(node)
            elif node.op == "if":
                self._branch(node)
            elif node.op in EFFECTS:
                self._write(node)
            elif node.op == "gather" and self.ordered.get(node.attrs["array"].name):
                self._ordered_gather(node)
            else:
                self._define(node, block, position)

    def _define(self, node: Node, block: Block, position: int) -> None:
        text = self.expression(node)
        if self._may_inline(node, text, block, position):
            self.inline[node] = text
            return
        typed = (text, self.type(node.type))
        if node.op == "constant":
            for scope in self.scopes:
                if typed in scope:
                    self.names.share(node, scope[typed])
                    return
        name = self.names.of(node)
        self.scopes[-1][typed] = name
        self.line(f"let {name}: {typed[1]} = {text};")

    def _may_inline(self, node: Node, text: str, block: Block, position: int) -> bool:
        if node.op == "constant":
            return self._plain_scalar(node) or text.startswith("broadcast_scalar(")
        if node.name is not None or node.op not in INLINABLE or len(text) > INLINE_WIDTH:
            return False
        if self.uses.get(node, 0) != 1:
            return False
        later = block.nodes[position + 1 :]
        return any(node in other.operands and other.op in INLINABLE for other in later)

    @staticmethod
    def _plain_scalar(node: Node) -> bool:
        return node.type is not None and not node.type.shape and node.type.dtype.code in ("i32", "bool")

    def _loop(self, node: Node) -> None:
        assert node.body is not None
        for start, argument in zip(node.operands[3:], node.body.arguments, strict=True):
            result = node.attrs["results"][argument_index(node, argument)]
            name = self.names.of(result)
            self.names.share(argument, name)
            self.line(f"let mut {name}: {self.type(start.type)} = {self.value(start)};")
        start, stop, step = (self.value(bound) for bound in node.operands[:3])
        if node.operands[1].op == "constant" and node.operands[0].op == "constant":
            self.helpers.setdefault("unbounded", helpers.UNBOUNDED)
            stop = f"unbounded({stop})"
        index = self.names.of(node.attrs["index"])
        used = any(node.attrs["index"] in inner.operands for inner in walk(node.body))
        span = f"{start}..{stop}" if step == "1i32" else f"({start}..{stop}).step_by({step})"
        self.line(f"for {index if used else '_'} in {span} {{")
        self._inside(node.body, node)
        self.line("}")

    def _inside(self, block: Block, region: Node) -> None:
        self.depth += 1
        self.scopes.append({})
        self.block(block)
        self.scopes.pop()
        updates = []
        for result, end in zip(region.attrs.get("results", []), block.results, strict=True):
            name, value = self.names.of(result), self.value(end)
            if name != value:
                updates.append((name, value))
        targets = {name for name, _ in updates}
        for name, value in updates:
            if value in targets and value != name:
                fresh = self.names.fresh(f"next_{name}")
                self.line(f"let {fresh} = {value};")
                updates[updates.index((name, value))] = (name, fresh)
        for name, value in updates:
            self.line(f"{name} = {value};")
        self.depth -= 1

    def _branch(self, node: Node) -> None:
        assert node.body is not None and node.other is not None
        for start, result in zip(node.operands[1:], node.attrs.get("results", []), strict=True):
            self.line(f"let mut {self.names.of(result)}: {self.type(start.type)} = {self.value(start)};")
        self.line(f"if {self.value(node.operands[0])} {{")
        self._inside(node.body, node)
        if node.other.nodes or any(
            end is not start for end, start in zip(node.other.results, node.operands[1:], strict=True)
        ):
            self.line("} else {")
            self._inside(node.other, node)
        self.line("}")

    # ---- memory --------------------------------------------------------------------------

    def _access(self, node: Node, dims: tuple[Dim, ...], *, ordered: bool) -> Access:
        array: Array = node.attrs["array"]
        kind = Access(
            write=node.op == "scatter",
            array_rank=array.rank,
            tile_rank=len(dims),
            unit=self.layouts[array.name].unit_strides,
            checked=node.attrs["checked"],
            masked=node.attrs["masked"],
            padded=node.op == "gather" and (len(dims) < 2 or node.attrs["checked"] or node.attrs["masked"]),
            ordered=ordered,
            latency=node.attrs["latency"] or 0,
            bytes=ELEMENT_BYTES.get(array.dtype.code, 0) if all(dim.one for dim in dims) else 0,
        )
        rank = kind.tile_rank
        self.helpers.setdefault(f"widen_{rank}d", helpers.widen(rank) if rank else helpers.scalar_index())
        self.helpers.setdefault(kind.name, helpers.access(kind))
        return kind

    def _call(self, node: Node, dims: tuple[Dim, ...], token: str, *, ordered: bool = False) -> str:
        array: Array = node.attrs["array"]
        kind = self._access(node, dims, ordered=ordered)
        rust = self.names.array(array.name)
        arguments = [rust]
        arguments += [f"{rust}_dim{axis}" for axis in range(array.rank)] if kind.checked else []
        arguments += [f"{rust}_stride{axis}" for axis in range(array.rank) if not kind.unit[axis]]
        arguments += [self.tile_value(operand) for operand in node.operands]
        if kind.padded:
            arguments.append(self._pad(node))
        arguments.append(token)
        return f"unsafe {{ {kind.name}({', '.join(arguments)}) }}"

    def _pad(self, node: Node) -> str:
        known: Known = node.attrs["pad"]
        element = node.attrs["array"].dtype.code
        number = known.lanes[0]
        if element == "f32":
            return float_literal(float(number))
        if element in ("i32", "i64", "i8", "u8", "i16", "u16", "u32", "u64"):
            return f"{int(number)}{element}"
        text = f"convert_scalar({float_literal(float(number))})"
        for scope in self.scopes:
            if (text, element) in scope:
                return scope[text, element]
        name = self.names.fresh("pad")
        self.line(f"let {name}: {element} = {text};")
        self.scopes[-1][text, element] = name
        return name

    def _write(self, node: Node) -> None:
        name = node.attrs["array"].name
        rust = self.names.array(name)
        if node.op == "store":
            tiles = self._partition(node)
            self.line("unsafe {")
            self.line(f"{INDENT}store_view_tko_mut(")
            arguments = [f"&mut {tiles}", self.value(node.operands[-1]), self._place(node), *self._modes(node)]
            for argument in arguments:
                self.line(f"{INDENT * 2}{argument},")
            self.line(f"{INDENT});")
            self.line("}")
            return
        dims: tuple[Dim, ...] = node.attrs["shape"]
        if not self.ordered.get(name):
            self.line(f"let _: Token = {self._call(node, dims, 'token')};")
            return
        self.line(f"{rust}_token = {self._call(node, dims, f'{rust}_token')};")
        if any(line.strip().startswith(f"let mut {rust}_written") for line in self.lines):
            self.line(f"{rust}_written = {rust}_token;")

    def _ordered_gather(self, node: Node) -> None:
        assert node.type is not None
        rust, name = self.names.array(node.attrs["array"].name), self.names.of(node)
        call = self._call(node, node.type.shape, f"{rust}_written", ordered=True)
        read = self.names.fresh(f"{rust}_read")
        self.line(f"let ({name}, {read}): ({self.type(node.type)}, Token) = {call};")
        self.line(f"{rust}_token = join_tokens(&[{rust}_token, {read}]);")

    def _place(self, node: Node) -> str:
        return f"[{', '.join(self.number(item) for item in node.attrs['index'])}]"

    def _modes(self, node: Node) -> list[str]:
        latency = node.attrs["latency"]
        tma = "Disabled" if node.attrs["tma"] is False else "Enabled"
        return ["ordering::Weak", "scope::TileBlock", "None" if latency is None else f"Some({latency})", f"tma::{tma}"]

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
            return f"scalar_to_tile({self.value(node)})"
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
                self.line(f"let {count}: {tile_type('i32', shape)} = broadcast_scalar({known.code}, {self._shape(node)});")
                return f"exti({count})"
            self.line(f"let {count}: {tile_type('i32', shape)} = broadcast_scalar({known.code}, {self._shape(node)});")
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
            assert node.type is not None and node.operands[0].type is not None
            old, new = node.operands[0].type.dtype.code, node.type.dtype.code
            bits = helpers_bits(old), helpers_bits(new)
            if bits[0] < bits[1]:
                return f"exti({value})"
            raise Limit(what=f"a conversion from {old} to {new} without an overflow flag", since=None).refuse(
                node.place, "keep the wider type"  # type: ignore[arg-type]
            )
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
        assert node.type is not None and x.type is not None
        if x.type.dtype.code in ("i32", "bool"):
            return f"broadcast_scalar({self.value(x)}, {self._shape(node)})"
        ones = const_shape(("1",) * len(node.type.shape))
        return f"{self.value(x)}.reshape({ones}).broadcast({self._shape(node)})"

    def _num_tiles(self, node: Node) -> str:
        raise Refusal(node.place, "no rule for ct.num_tiles", "compute it with ct.cdiv")  # type: ignore[arg-type]

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
        return self._call(node, node.type.shape, "token")

    def _load(self, node: Node) -> str:
        tiles = self._partition(node)
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
                return f"{fn}({self.value(a)}, {self.value(b)})" if scalar else f"{fn}i({self.value(a)}, {self.value(b)})"
            nan = "Enabled" if node.attrs.get("nan") else "Disabled"
            return f"{fn}f({self.value(a)}, {self.value(b)}, nan::{nan}, {self._ftz(node)})"
        if fn == "truediv" and node.attrs.get("rounding") == "Approx" and node.attrs.get("ftz"):
            return f"true_div({self.value(a)}, {self.value(b)})"
        if fn == "truediv" and node.attrs.get("rounding") in ("Approx", "Full"):
            what = f"a division rounded {node.attrs['rounding'].lower()} without flush to zero"
            raise Limit(what=what, since="0.5.0").refuse(node.place, "set flush_to_zero as well")  # type: ignore[arg-type]
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
        return f"({text})" if node in self.inline and node.op in ("binary", "compare") and " " in text and not _call_like(text) else text

    def _rounding(self, node: Node) -> str:
        return f"rounding::{node.attrs.get('rounding') or 'NearestEven'}"

    def _ftz(self, node: Node) -> str:
        return "ftz::Enabled" if node.attrs.get("ftz") else "ftz::Disabled"


def _limit(node: Node, what: str, advice: str) -> Refusal:
    return Limit(what=what, since="0.5.0").refuse(node.place or ast.Pass(), advice)


def _of(node: Node, array: str) -> bool:
    found = node.attrs.get("array")
    return isinstance(found, Array) and found.name == array


def _described(kind: str, known: list[str], dynamic: list[str]) -> tuple[str, str]:
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

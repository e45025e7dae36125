"""Prints the operations of an entry as Rust."""

import math
from dataclasses import dataclass

from farm.recipes.cutile_rs.kernel import divisibility, helpers
from farm.recipes.cutile_rs.kernel.helpers import Access, const_shape, tile_type
from farm.recipes.cutile_rs.kernel.model import Array, Block, Dim, Known, Layout, Node
from farm.recipes.cutile_rs.kernel.passes import EFFECTS, READS, walk
from farm.recipes.cutile_rs.kernel.refusal import Refusal
from farm.recipes.cutile_rs.kernel.spelling import (
    GIVING_TILES,
    INDENT,
    INLINABLE,
    INLINE_WIDTH,
    Spelling,
    argument_index,
    described,
    float_literal,
    of_array,
)


@dataclass
class Printer(Spelling):
    """Writes one entry's body; collects the helper functions that it calls."""

    def body(self, root: Block) -> list[str]:
        """The body's lines."""
        self._survey(root)
        self._prologue(root)
        self.block(root)
        return self.lines

    # ---- survey --------------------------------------------------------------------------

    def _survey(self, root: Block) -> None:
        for node in walk(root):
            for operand in node.operands:
                self.uses[operand] = self.uses.get(operand, 0) + 1
            for inner in (node.body, node.other):
                for result in inner.results if inner else ():
                    self.uses[result] = self.uses.get(result, 0) + 2
        loops = {
            inner for node in walk(root) if node.op in ("for", "if") and node.body for inner in walk(node.body)
        }
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
                return store not in node.body.nodes or node.attrs["index"] not in store.operands
            if node.op == "if" and any(store in set(walk(b)) for b in (node.body, node.other) if b):
                return True
        return False

    def _prologue(self, root: Block) -> None:
        pointers = [n for n in walk(root) if n.op in ("gather", "scatter")]
        self.line("let token: Token = new_token_unordered();")
        for name, layout in self.layouts.items():
            if layout.viewed:
                self._view(name, next(n for n in walk(root) if of_array(n, name)).attrs["array"], layout)
        for name, chained in self.ordered.items():
            if chained and any(n.attrs["array"].name == name for n in pointers):
                rust = self.names.array(name)
                self.line(f"let mut {rust}_token: Token = token;")
                if self._mixed(name, pointers):
                    self.line(f"let mut {rust}_written: Token = token;")
        for node in walk(root):
            if node.op in ("load", "store", "num_tiles"):
                self.partition(node)

    @staticmethod
    def _mixed(name: str, accesses: list[Node]) -> bool:
        ops = {n.op for n in accesses if n.attrs["array"].name == name}
        return ops == {"gather", "scatter"}

    def _view(self, name: str, array: Array, layout: Layout) -> None:
        rust, element = self.names.array(name), array.dtype.code
        extents = ["1" if one else "-1" for one in layout.unit_extents]
        strides = ["1" if one and not layout.lone(axis) else "-1" for axis, one in enumerate(layout.unit_strides)]
        dims = [f"{rust}_dim{axis}" for axis, extent in enumerate(extents) if extent == "-1"]
        steps = [f"{rust}_stride{axis}" for axis, stride in enumerate(strides) if stride == "-1"]
        parts = {
            "base": (f"PointerTile<*mut {element}, {{ [] }}>", f"pointer_to_tile({rust})"),
            "shape": described("Shape", extents, dims),
            "strides": described("Array", strides, steps),
        }
        for part, (type_, text) in parts.items():
            self.line(f"let {rust}_{part}: {type_} = {text};")
        view = self.names.fresh(f"{rust}_view")
        self.views[name] = view
        # A written type would hide the strides from the compiler's inference.
        made = f"make_tensor_view({rust}_base, {rust}_shape, {rust}_strides, token)"
        self.line(f"let {view} = unsafe {{ {made} }};")

    def partition(self, node: Node) -> str:
        array: Array = node.attrs["array"]
        dims = node.type.shape if node.op == "load" and node.type else node.attrs["shape"]
        codes = tuple(dim.code for dim in dims)
        padding = node.attrs.get("padding", "None")
        kind = (array.name, codes, "mut" if node.op == "store" else padding)
        # A view orders its loads, which the source does not: each load has a view of its own.
        loads = self.loads.setdefault(kind, [])
        if node.op == "load" and node not in loads:
            loads.append(node)
        key = (*kind, loads.index(node) if node.op == "load" else 0)
        if key not in self.partitions:
            rust, element = self.views[array.name], array.dtype.code
            name = self.names.fresh(f"{self.names.array(array.name)}_tiles")
            self.partitions[key] = name
            shape = const_shape(codes)
            if node.op == "store":
                self.line(f"let mut {name}: PartitionMut<{element}, {{ [{', '.join(codes)}] }}> =")
                self.line(f"{INDENT}unsafe {{ {rust}.partition_full_mut({shape}) }};")
            elif padding == "Zero":
                self.line(
                    f"let {name}: Partition<{element}, {{ [{', '.join(codes)}] }}> = {rust}.partition({shape});"
                )
            else:
                self.line(f"let {name}: Partition<{element}, {{ [{', '.join(codes)}] }}> = make_partition_view(")
                for argument in (
                    f"&{rust}",
                    shape,
                    f"padding::{padding}",
                    "dim_map::Identity",
                    f"get_tensor_token(&{rust})",
                ):
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
        if not self._gives_tile(node) and self._may_inline(node, text, block, position):
            self.inline[node] = text
            return
        typed = (text, self.type(node.type))
        if node.op == "constant":
            for scope in self.scopes:
                if typed in scope:
                    self.names.share(node, scope[typed])
                    return
        name = self.names.of(node)
        if self._gives_tile(node):
            tile = self.names.fresh(f"{name}_tile")
            self.line(f"let {tile}: {tile_type(typed[1], ())} = {text};")
            self.line(f"let {name}: {typed[1]} = tile_to_scalar({tile});")
            return
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

    def _may_be_known(self, node: Node) -> bool:
        """Whether the compiler may know a number, in some launch at least."""
        if node.op == "num_tiles":
            axis: int = node.attrs["axis"]
            return self.layouts[node.attrs["array"].name].unit_extents[axis]
        if node.op in ("binary", "unary", "convert"):
            return all(self._may_be_known(operand) for operand in node.operands)
        return node.op in ("constant", "extent", "stride")

    def _gives_tile(self, node: Node) -> bool:
        """Whether the expression of a scalar, which is a plain `i32` or `bool`, gives a tile of one."""
        if node.type is None or node.type.shape or node.type.dtype.code not in ("i32", "bool"):
            return False
        if node.op == "compare":
            operand = node.operands[0].type
            return operand is not None and operand.dtype.code != "i32"
        return node.op in GIVING_TILES

    def _loop(self, node: Node) -> None:
        assert node.body is not None
        for start, argument in zip(node.operands[3:], node.body.arguments, strict=True):
            result = node.attrs["results"][argument_index(node, argument)]
            name = self.names.of(result)
            self.names.share(argument, name)
            self.line(f"let mut {name}: {self.type(start.type)} = {self.value(start)};")
        first, stop, step = (self.value(bound) for bound in node.operands[:3])
        if all(self._may_be_known(bound) for bound in node.operands[:2]):
            self.helpers.setdefault("unbounded", helpers.UNBOUNDED)
            stop = f"unbounded({stop})"
        index = self.names.of(node.attrs["index"])
        used = any(node.attrs["index"] in inner.operands for inner in walk(node.body))
        span = f"{first}..{stop}" if step == "1i32" else f"({first}..{stop}).step_by({step} as usize)"
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
        assert node.body is not None
        assert node.other is not None
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
            aligned=bool(divisibility.single(dims, array)),
        )
        rank = kind.tile_rank
        self.helpers.setdefault(f"widen_{rank}d", helpers.widen(rank) if rank else helpers.scalar_index())
        self.helpers.setdefault(kind.name, helpers.access(kind))
        return kind

    def access_call(self, node: Node, dims: tuple[Dim, ...], token: str, *, ordered: bool = False) -> str:
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
        if kind.aligned:
            arguments.append(const_shape((self._element(node, array, dims),)))
        return f"unsafe {{ {kind.name}({', '.join(arguments)}) }}"

    def _promised(self, node: Node) -> None:
        """Promise of an integer that is written what divides it, as the source does."""
        stored = node.operands[-1]
        lanes = range(len(node.attrs["array"].dtype.lanes))
        known = {min(divisibility.MOST, divisibility.power(self.divisors.of(stored, lane))) for lane in lanes}
        if known <= {0, 1} or stored.op == "constant":
            return
        if len(known) > 1:
            raise self.apart(node)
        name = self.names.fresh(f"{self.names.of(stored)}_stored")
        value = self.tile_value(stored)
        self.line(
            f"let {name}: {self.type(stored.type)} = unsafe {{ assume_div_by::<_, {known.pop()}>({value}) }};"
        )
        self.inline[stored] = name

    def _element(self, node: Node, array: Array, dims: tuple[Dim, ...]) -> str:
        """The generic that promises the alignment of the element that an access is for."""
        index = node.operands[: array.rank]
        lanes = {self.divisors.steps(index, lane) for lane in divisibility.single(dims, array)}
        if len(lanes) > 1:
            raise self.apart(node)
        key = (array.name, lanes.pop())
        if key not in self.elements:
            self.elements[key] = self.names.fresh(f"{self.names.array(array.name).upper()}_ELEMENT")
        return self.elements[key]

    def _pad(self, node: Node) -> str:
        known: Known = node.attrs["pad"]
        element = node.attrs["array"].dtype.code
        number = known.lanes[0]
        if math.isinf(number) or math.isnan(number):
            return self._special_pad(float(number), element)
        if element == "bool":
            return "true" if number else "false"
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

    def _special_pad(self, number: float, element: str) -> str:
        """A padding scalar that no literal gives: an infinity or no number."""
        text = f"constant({float_literal(number)}, const_shape![])"
        for scope in self.scopes:
            if (text, element) in scope:
                return scope[text, element]
        tile, name = self.names.fresh("pad_tile"), self.names.fresh("pad")
        self.line(f"let {tile}: {tile_type('f32', ())} = {text};")
        self.line(f"let {name}: f32 = tile_to_scalar({tile});")
        if element != "f32":
            wide, name = name, self.names.fresh("pad")
            self.line(f"let {name}: {element} = convert_scalar({wide});")
        self.scopes[-1][text, element] = name
        return name

    def _write(self, node: Node) -> None:
        name = node.attrs["array"].name
        rust = self.names.array(name)
        if node.op == "store":
            tiles = self.partition(node)
            self.line("unsafe {")
            self.line(f"{INDENT}store_view_tko_mut(")
            arguments = [f"&mut {tiles}", self.value(node.operands[-1]), self._place(node), *self._modes(node)]
            for argument in arguments:
                self.line(f"{INDENT * 2}{argument},")
            self.line(f"{INDENT});")
            self.line("}")
            return
        dims: tuple[Dim, ...] = node.attrs["shape"]
        self._promised(node)
        if not self.ordered.get(name):
            self.line(f"let _: Token = {self.access_call(node, dims, 'token')};")
            return
        self.line(f"{rust}_token = {self.access_call(node, dims, f'{rust}_token')};")
        if any(line.strip().startswith(f"let mut {rust}_written") for line in self.lines):
            self.line(f"{rust}_written = {rust}_token;")

    def _ordered_gather(self, node: Node) -> None:
        assert node.type is not None
        rust, name = self.names.array(node.attrs["array"].name), self.names.of(node)
        call = self.access_call(node, node.type.shape, f"{rust}_written", ordered=True)
        read = self.names.fresh(f"{rust}_read")
        tile = self.names.fresh(f"{name}_tile") if self._gives_tile(node) else name
        type_ = tile_type(node.type.dtype.code, tuple(dim.code for dim in node.type.shape))
        self.line(f"let ({tile}, {read}): ({type_}, Token) = {call};")
        if tile != name:
            self.line(f"let {name}: {self.type(node.type)} = tile_to_scalar({tile});")
        self.line(f"{rust}_token = join_tokens(&[{rust}_token, {read}]);")

"""Rust names for what the source calls otherwise."""

import re
from dataclasses import dataclass, field

from farm.recipes.cutile_rs.kernel.dtypes import Category
from farm.recipes.cutile_rs.kernel.model import Node

#: Words that no variable may be called: the language's, and the functions that the bodies call.
TAKEN = frozenset(
    [
        "as",
        "async",
        "await",
        "box",
        "break",
        "const",
        "continue",
        "crate",
        "do",
        "dyn",
        "else",
        "enum",
        "extern",
        "false",
        "fn",
        "for",
        "gen",
        "if",
        "impl",
        "in",
        "let",
        "loop",
        "macro",
        "match",
        "mod",
        "move",
        "mut",
        "pub",
        "ref",
        "return",
        "self",
        "static",
        "struct",
        "super",
        "trait",
        "true",
        "try",
        "type",
        "union",
        "unsafe",
        "use",
        "virtual",
        "where",
        "while",
        "yield",
        "abs",
        "absf",
        "absi",
        "addf",
        "addi",
        "andi",
        "atan2",
        "bf16",
        "bitcast",
        "bool",
        "broadcast",
        "broadcast_scalar",
        "cat",
        "ceil",
        "ceil_div",
        "cmpf",
        "cmpi",
        "constant",
        "convert_scalar",
        "convert_tile",
        "core",
        "cos",
        "cosh",
        "divf",
        "divi",
        "exp",
        "exp2",
        "extract",
        "exti",
        "f16",
        "f32",
        "f64",
        "floor",
        "fma",
        "ftof",
        "i32",
        "i64",
        "iota",
        "itof",
        "join_tokens",
        "load_ptr_tko",
        "load_view_tko",
        "log",
        "log2",
        "make_partition_view",
        "make_tensor_view",
        "max",
        "maxf",
        "maxi",
        "min",
        "minf",
        "mini",
        "mulf",
        "muli",
        "nan",
        "negf",
        "negi",
        "ordering",
        "ori",
        "padding",
        "permute",
        "pointer_to_tile",
        "pow",
        "predicate",
        "reduce_max",
        "reduce_min",
        "reduce_prod",
        "reduce_sum",
        "remi",
        "reshape",
        "rounding",
        "rsqrt",
        "scalar_to_tile",
        "scope",
        "select",
        "shape",
        "shli",
        "shri",
        "sin",
        "sinh",
        "sqrt",
        "subf",
        "subi",
        "tan",
        "tanh",
        "tile_to_scalar",
        "tma",
        "token",
        "true_div",
        "trunci",
        "xori",
        "widen_0d",
        "widen_1d",
        "widen_2d",
    ]
)
#: What an unnamed result is called after its operation.
ROOTS = {
    "compare": "is", "iota": "index", "gather": "value", "load": "tile", "block": "block", "blocks": "blocks",
    "select": "chosen", "num_tiles": "tiles",
}  # fmt: skip


def snake(name: str) -> str:
    """`_softmaxKernel` as `softmax_kernel`."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip("_")).lower()
    text = re.sub(r"\W", "_", text) or "value"
    return text if not text[0].isdigit() else f"v{text}"


@dataclass
class Names:
    """Gives every result of an entry one name."""

    arrays: dict[str, str] = field(default_factory=dict)  #: by the source's name
    params: dict[str, str] = field(default_factory=dict)  #: scalars, by the source's name
    _used: set[str] = field(default_factory=set)
    _of: dict[Node, str] = field(default_factory=dict)

    def reserve(self, name: str) -> str:
        """`name`, or a variant that is free; it is taken from now on."""
        text = snake(name) if not name.isupper() else name
        return self.fresh(text)

    def fresh(self, base: str) -> str:
        """A free name that begins with `base`."""
        name, count = base, 1
        while name in self._used or name in TAKEN:
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        return name

    def array(self, name: str) -> str:
        """The parameter that an array is."""
        return self.arrays[name]

    def param(self, name: str) -> str:
        """The parameter that a scalar is."""
        return self.params[name]

    def measure(self, node: Node) -> str:
        """The parameter that an extent or stride is."""
        kind = "dim" if node.op == "extent" else "stride"
        return f"{self.array(node.attrs['array'])}_{kind}{node.attrs['axis']}"

    def share(self, node: Node, name: str) -> None:
        """Let `node` be called `name`, as another node is."""
        self._of[node] = name

    def of(self, node: Node) -> str:
        """The name of a result, chosen when it is first asked for."""
        if node not in self._of:
            self._of[node] = self.fresh(self._base(node))
        return self._of[node]

    def _base(self, node: Node) -> str:
        if node.name is not None:
            name = snake(node.name)
            if node.op == "convert" and name in self._used and node.type is not None:
                return f"{name}_{node.type.dtype.code.lower()}"
            return name
        source = node.operands[0] if node.operands else None
        stem = self._of.get(source, "") if source is not None else ""
        stem = stem or (snake(source.name) if source is not None and source.name else "")
        match node.op:
            case "convert" if node.type is not None and stem:
                return f"{stem}_{node.type.dtype.code.lower()}"
            case "widen" if stem:
                return f"{stem}_index"
            case "reduce":
                fn = str(node.attrs["fn"])
                return f"{stem}_{fn}" if stem else f"{fn}_of"
            case "broadcast" | "splat" | "reshape" | "permute" if stem:
                how = {"broadcast": "wide", "splat": "wide", "reshape": "reshaped", "permute": "turned"}
                return f"{stem}_{how[node.op]}"
            case "scalar":
                return f"{snake(node.attrs['param'])}_tile"
            case "constant":
                return self._constant(node)
            case "unary":
                fn = str(node.attrs["fn"])
                return f"{fn}_{stem}" if stem else f"{fn}_of"
            case "binary":
                words = {"add": "sum", "sub": "difference", "mul": "product", "truediv": "quotient"}
                fn = str(node.attrs["fn"])
                return words.get(fn, f"{fn}_of")
            case _:
                return ROOTS.get(node.op, node.op + "_of" if node.op in TAKEN else node.op)

    @staticmethod
    def _constant(node: Node) -> str:
        known = node.attrs["value"]
        if known.code is not None:
            return "count" if not known.code.isidentifier() else known.code.lower()
        value = float(known.lanes[0])
        words = {0.0: "zero", 1.0: "one", 2.0: "two", 0.5: "half", -1.0: "minus_one"}
        return words.get(value, "factor" if node.attrs.get("kind") is Category.FLOAT else "number")

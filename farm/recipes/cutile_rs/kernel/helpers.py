"""Small Rust functions that a kernel module gets where it needs them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Access:
    """Which variant of a gather or scatter helper is meant."""

    write: bool
    array_rank: int
    tile_rank: int
    unit: tuple[bool, ...]  #: per axis: the stride is 1
    checked: bool
    masked: bool
    padded: bool  #: a gather with a mask
    ordered: bool  #: the gather's token is handed out
    latency: int
    aligned: bool = False  #: for one element: its address is promised to have the alignment `ALIGN`

    @property
    def name(self) -> str:
        """Rust name: what differs from the plain case is said in it."""
        parts = ["scatter" if self.write else "gather", f"{self.array_rank}d"]
        if self.tile_rank != 1:
            parts.append("at" if self.tile_rank == 0 else f"tile{self.tile_rank}d")
        parts += [word for word, said in (("where", self.masked), ("unchecked", not self.checked)) if said]
        if self.unit != (False,) * (self.array_rank - 1) + (True,):
            parts.append("strided" if not any(self.unit) else "".join("u" if u else "s" for u in self.unit))
        parts += ["ordered"] if self.ordered else []
        parts += [f"latency{self.latency}"] if self.latency else []
        parts += ["aligned"] if self.aligned else []
        return "_".join(parts)


#: How what is known of an extent or stride reaches the compiler.
MEASURED = """\
    /// An extent or stride: 1 if `KNOWN` is 0, else not negative and divisible by `KNOWN`.
    ///
    /// # Safety
    /// It is.
    unsafe fn measured<const KNOWN: i32>(x: i32) -> i32 {
        if KNOWN == 0i32 {
            1i32
        } else {
            let x: i32 = unsafe { assume_bounds_lower::<_, 0>(x) };
            if KNOWN > 1i32 {
                unsafe { assume_div_by::<_, KNOWN>(x) }
            } else {
                x
            }
        }
    }
"""


#: Where the target's compiler would promise more about a loop's index than the source's does.
UNBOUNDED = """\
    /// A known number as one that the compiler draws no conclusions from.
    fn unbounded(x: i32) -> i32 {
        let x: Tile<i32, { [] }> = scalar_to_tile(x);
        let x: Tile<i32, { [1] }> = x.reshape(const_shape![1]);
        let x: Tile<i32, { [] }> = x.reshape(const_shape![]);
        tile_to_scalar(x)
    }
"""


def tile_type(element: str, dims: tuple[str, ...]) -> str:
    """`Tile<E, { [M, N] }>`."""
    return f"Tile<{element}, {{ [{', '.join(dims)}] }}>"


def const_shape(dims: tuple[str, ...]) -> str:
    """`const_shape![M, N]`."""
    return f"const_shape![{', '.join(dims)}]"


def widen(rank: int) -> str:
    """A scalar as an index tile of 64 unsigned bits."""
    dims = ("M", "N", "K", "L")[:rank] if rank > 1 else ("N",)
    generics = ", ".join(f"const {dim}: i32" for dim in dims)
    ones = const_shape(("1",) * rank)
    return f"""\
    /// A scalar as a tile of 64-bit indices.
    fn widen_{rank}d<{generics}>(x: i32, shape: Shape<{{ [{", ".join(dims)}] }}>) -> {tile_type("u64", dims)} {{
        let x: Tile<i32, {{ [] }}> = scalar_to_tile(x);
        let x: Tile<u64, {{ [] }}> = exti(x);
        let x: {tile_type("u64", ("1",) * rank)} = x.reshape({ones});
        x.broadcast(shape)
    }}
"""


def scalar_index() -> str:
    """A scalar as one index of 64 unsigned bits."""
    return """\
    /// A scalar as a 64-bit index.
    fn widen_0d(x: i32) -> Tile<u64, { [] }> {
        let x: Tile<i32, { [] }> = scalar_to_tile(x);
        exti(x)
    }
"""


def access(kind: Access) -> str:
    """The text of a gather or scatter helper."""
    dims = ("M", "N", "K", "L")[: kind.tile_rank] if kind.tile_rank > 1 else ("N",) * kind.tile_rank
    shape, index = const_shape(dims), tile_type("u64", dims)
    axes = range(kind.array_rank)
    params = ["x: *mut E"]
    params += [f"dim{axis}: i32" for axis in axes] if kind.checked else []
    params += [f"stride{axis}: i32" for axis in axes if not kind.unit[axis]]
    params += [f"i{axis}: {index}" for axis in axes]
    params += [f"mask: {tile_type('bool', dims)}"] if kind.masked else []
    params += [f"value: {tile_type('E', dims)}"] if kind.write else []
    params += ["pad: E"] if kind.padded else []
    params += ["token: Token"]
    params += ["_align: Shape<{ [ALIGN] }>"] if kind.aligned else []
    generics = "".join(f", const {dim}: i32" for dim in (*dims, *(["ALIGN"] if kind.aligned else [])))
    result = "Token" if kind.write else tile_type("E", dims)
    if kind.ordered:
        result = f"({result}, Token)"
    lines = [f"    /// {_summary(kind)}"]
    lines += ["    ///", "    /// # Safety", f"    /// {_safety(kind)}"]
    lines += [f"    unsafe fn {kind.name}<E: ElementType{generics}>("]
    lines += [f"        {param}," for param in params]
    lines += [f"    ) -> {result} {{", *(f"        {line}" for line in _body(kind, dims, shape)), "    }", ""]
    return "\n".join(lines)


def _summary(kind: Access) -> str:
    place = "x[" + ", ".join(f"i{axis}" for axis in range(kind.array_rank)) + "]"
    limits = [word for word, said in (("in bounds", kind.checked), ("wanted by `mask`", kind.masked)) if said]
    where = " and ".join(limits)
    if kind.write:
        return f"Writes `value` to `{place}`" + (f" where that is {where}." if where else ".")
    return f"Reads `{place}`" + (f" where that is {where}, else `pad`." if where else ".")


def _safety(kind: Access) -> str:
    if kind.checked:
        return "`x` points to an array with these extents and strides."
    return "Every index lies within the array that `x` points to."


def _body(kind: Access, dims: tuple[str, ...], shape: str) -> list[str]:
    index = tile_type("u64", dims)
    rank = kind.tile_rank

    def wide(name: str) -> str:
        return f"widen_{rank}d({name}, {shape})" if rank else f"widen_0d({name})"

    lines = []
    masks = []
    for axis in range(kind.array_rank) if kind.checked else ():
        lines.append(f"let end{axis}: {index} = {wide(f'dim{axis}')};")
        inside = f"inside{axis}"
        lines.append(f"let {inside}: {tile_type('bool', dims)} = cmpi(i{axis}, end{axis}, predicate::LessThan);")
        masks.append(inside)
    masks += ["mask"] if kind.masked else []
    if len(masks) > 1:
        lines.append(f"let inside: {tile_type('bool', dims)} = {' & '.join(masks)};")
        masks = ["inside"]
    terms = []
    for axis in range(kind.array_rank):
        if kind.unit[axis]:
            terms.append(f"i{axis}")
            continue
        lines.append(f"let step{axis}: {index} = {wide(f'stride{axis}')};")
        terms.append(f"i{axis} * step{axis}")
    lines.append(f"let offset: {index} = {' + '.join(terms)};")
    base = "PointerTile<*mut E, { [%s] }>"
    lines.append(f"let base: {base % ''} = pointer_to_tile(x);")
    if rank:
        ones = ", ".join(("1",) * rank)
        lines.append(f"let base: {base % ones} = base.reshape({const_shape(('1',) * rank)});")
        lines.append(f"let base: {base % ', '.join(dims)} = base.broadcast({shape});")
    lines.append(f"let at: {base % ', '.join(dims)} = base.offset_tile(offset);")
    if kind.aligned:
        promised = "unsafe { assume_div_by::<_, ALIGN>(at) }"
        for dim in dims[:1] if len(set(dims)) == 1 else dims:
            promised = f"if {dim} == 1i32 {{ {promised} }} else {{ at }}"
        lines.append(f"let at: {base % ', '.join(dims)} = {promised};")
    mask = f"Some({masks[0]})" if masks else "None"
    common = f"ordering::Weak, None::<scope::TileBlock>, {mask}"
    end = f"Some(token), Latency::<{kind.latency}>"
    if kind.write:
        return [*lines, f"store_ptr_tko(at, value, {common}, {end})"]
    pair = f"({tile_type('E', dims)}, Token)"
    pad = "Some(pad)" if kind.padded and rank < 2 else "None::<E>"
    lines.append(f"let (tile, read): {pair} = load_ptr_tko(at, {common}, {pad}, {end});")
    value = "tile"
    if kind.padded and rank >= 2:
        lines.append(f"let pad: {tile_type('E', dims)} = pad.broadcast({shape});")
        value = f"select({masks[0]}, tile, pad)"
    if kind.ordered:
        return [*lines, f"({value}, read)"]
    lines[-1] = lines[-1].replace("(tile, read)", "(tile, _)") if value == "tile" else lines[-1]
    if value != "tile":
        lines = [line.replace("(tile, read)", "(tile, _)") for line in lines]
    return [*lines, value]

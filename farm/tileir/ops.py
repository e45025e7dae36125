"""What kinds of operations Tile IR has, as far as a comparison must know."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Elementwise, without effects: the result's element depends on the operands' elements at its place alone.
ELEMENTWISE = _names(
    "absf absi addf addi andi atan2 bitcast ceil cmpf cmpi cos cosh divf divi exp exp2 exti floor fma ftof "
    "ftoi int_to_ptr itof log log2 maxf maxi minf mini mulf mulhii muli negf negi offset ori pow ptr_to_int "
    "ptr_to_ptr remf remi rsqrt select shli shri sin sinh sqrt subf subi tan tanh trunci xori"
)
#: Without effects; two with equal operands are one, and an unused one is none.
PURE = ELEMENTWISE | _names(
    "broadcast cat constant extract get_global get_index_space_shape get_num_tile_blocks get_tensor_shape "
    "get_tile_block_id iota make_gather_scatter_view make_partition_view make_strided_view make_tensor_view "
    "make_token mmaf mmaf_scaled mmai pack permute reshape unpack"
)
#: Undefined for some operands, so that it may not be moved out of its region.
PARTIAL = frozenset({"divi", "remi"})
#: Operands 0 and 1 may be exchanged.
COMMUTATIVE = _names(
    "addf addi andi fma maxf maxi minf mini mulf mulhii muli ori xori"  # fma: its two factors
)
#: Comparisons whose operands may be exchanged.
SYMMETRIC_PREDICATES = frozenset({"equal", "not_equal"})
#: Weak loads have no effect that another operation could see.
LOADS = frozenset({"load_ptr_tko", "load_view_tko"})


def commutes(op: str, attrs: tuple[object, ...]) -> bool:
    """Whether operands 0 and 1 of this operation may be exchanged."""
    return op in COMMUTATIVE or (op in ("cmpi", "cmpf") and not SYMMETRIC_PREDICATES.isdisjoint(attrs))

"""What two nodes themselves, without their operands, differ in."""

import re

from farm.tileir.arithmetic import number_of
from farm.tileir.constants import to_float
from farm.tileir.difference import DifferenceKind
from farm.tileir.graph import Node, Role
from farm.tileir.pairs import Mismatch, Pair, mismatch

_LEAVES = frozenset(
    {"param", "constant", "splat", "dense", "arg", "index", "loop_result", "if_result", "combined", "result"}
)
_OWN_ATTRS = frozenset({"if_result", "arg", "loop_result"})  # positions that the matcher compares by meaning
_LEAVING = frozenset({"continue", "break"})
_COMBINERS = ("reduce", "scan")
_ORDERS = frozenset({"weak", "relaxed", "acquire", "release", "acq_rel", "tl_blk", "device", "sys"})
_PREDICATES = frozenset(
    {
        "equal",
        "not_equal",
        "less_than",
        "less_than_or_equal",
        "greater_than",
        "greater_than_or_equal",
        "ordered",
        "unordered",
    }
)
_PADDING = re.compile(r"padding_value = \w+, ")
_DIM_MAP = re.compile(r", dim_map=\[[^\]]*\]")


def local_mismatch(pair: Pair) -> Mismatch | None:
    """The difference of two nodes' operations, attributes, types and number of operands; None: none."""
    a, b = pair.reference, pair.candidate
    if a.op != b.op:
        return _operations_differ(pair)
    if a.attrs != b.attrs and a.op not in _OWN_ATTRS:
        return attributes_differ(pair)
    if a.type != b.type:
        return types_differ(pair)
    if a.op in _LEAVING:
        return None
    access = a.type.text == "effect"
    if len(a.operands) != len(b.operands) or (access and a.roles != b.roles):
        return _roles_differ(pair)
    return None


def _operations_differ(pair: Pair) -> Mismatch:
    a, b = pair.reference, pair.candidate
    sentence = f"The reference has {describe(a)}, the candidate has {describe(b)}."
    ours, theirs = number_of(a), number_of(b)
    if ours is not None and theirs is not None:
        return mismatch(DifferenceKind.CONSTANT, pair, sentence)
    if a.type.text == b.type.text == "effect":
        return mismatch(DifferenceKind.EFFECT, pair, sentence)
    leaf = a.op in _LEAVES or b.op in _LEAVES
    return mismatch(DifferenceKind.DATA_FLOW if leaf else DifferenceKind.OPERATION, pair, sentence)


def attributes_differ(pair: Pair) -> Mismatch:
    """The mismatch of two nodes of one operation with different attributes."""
    a, b = pair.reference, pair.candidate
    if a.op == "constant":
        return mismatch(
            DifferenceKind.CONSTANT, pair, f"The constant is {describe(a)}, in the candidate {describe(b)}."
        )
    ours = [str(attr) for attr in a.attrs if attr not in b.attrs]
    theirs = [str(attr) for attr in b.attrs if attr not in a.attrs]
    sentence = f"`{a.op}` has {_quoted(ours)}, in the candidate {_quoted(theirs)}."
    return mismatch(_attribute_kind(a.op, {*ours, *theirs}), pair, sentence)


def _attribute_kind(op: str, words: set[str]) -> DifferenceKind:
    table = (
        (any(word.startswith("rounding<") for word in words), DifferenceKind.ROUNDING),
        ("flush_to_zero" in words, DifferenceKind.FLUSH),
        (any(word.startswith("overflow<") for word in words), DifferenceKind.OVERFLOW),
        (not _PREDICATES.isdisjoint(words), DifferenceKind.PREDICATE),
        (not words.isdisjoint({"signed", "unsigned"}), DifferenceKind.SIGNEDNESS),
        (not _ORDERS.isdisjoint(words), DifferenceKind.MEMORY_ORDER),
        (op in _COMBINERS, DifferenceKind.COMBINER),
        (op == "permute", DifferenceKind.PERMUTATION),
        (op == "dense", DifferenceKind.CONSTANT),
        (any(word.startswith(("shape=", "strides=")) for word in words), DifferenceKind.TYPE),
        (op == "result", DifferenceKind.DATA_FLOW),
    )
    return next((kind for holds, kind in table if holds), DifferenceKind.OPERATION)


def types_differ(pair: Pair) -> Mismatch:
    """The mismatch of two nodes of one operation with different types."""
    ours, theirs = pair.reference.type.text, pair.candidate.type.text
    kind = DifferenceKind.TYPE
    if _PADDING.sub("", ours) == _PADDING.sub("", theirs):
        kind = DifferenceKind.PADDING
    elif _DIM_MAP.sub("", ours) == _DIM_MAP.sub("", theirs):
        kind = DifferenceKind.PERMUTATION
    return mismatch(kind, pair, f"`{pair.reference.op}` gives {ours}, in the candidate {theirs}.")


def parameters_differ(pair: Pair, bound: int) -> Mismatch:
    """The mismatch of two parameters; `bound` is what the candidate's stands for, a reference index."""
    a, b = pair.reference, pair.candidate
    if a.type != b.type:
        return types_differ(pair)
    sentence = f"The reference uses parameter {a.attrs[0]} where the candidate uses its parameter {b.attrs[0]}, "
    sentence += f"which stands for the reference's parameter {bound}."
    return mismatch(DifferenceKind.DATA_FLOW, pair, sentence)


def hints_differ(pair: Pair) -> Mismatch:
    """The mismatch of two memory accesses with different hints."""
    ours, theirs = pair.reference.hints, pair.candidate.hints
    sentence = f"`{pair.reference.op}` hints {{{ours}}}, in the candidate {{{theirs}}}."
    return mismatch(DifferenceKind.HINT, pair, sentence)


def _roles_differ(pair: Pair) -> Mismatch:
    a, b = pair.reference, pair.candidate
    kinds = {
        Role.TOKEN: DifferenceKind.TOKEN_ORDER,
        Role.MASK: DifferenceKind.MASK,
        Role.PADDING: DifferenceKind.PADDING,
        Role.COMBINER: DifferenceKind.COMBINER,
    }
    odd = {role for role in (*a.roles, *b.roles) if a.roles.count(role) != b.roles.count(role)}
    kind = next((kinds[role] for role in kinds if role in odd), DifferenceKind.DATA_FLOW)
    sentence = f"`{a.op}` takes {_quoted(list(a.roles))}, in the candidate {_quoted(list(b.roles))}."
    return mismatch(kind, pair, sentence)


def describe(node: Node) -> str:
    """A node in a few words."""
    number = number_of(node)
    if number is not None:
        value = to_float(number)
        return f"{number.element} {number.value if value is None else value}"
    if node.op == "param":
        return f"parameter {node.attrs[0]}"
    if node.op in ("result", "splat") and node.operands:
        return describe(node.operands[0])
    names = {
        "arg": "a carried value",
        "index": "a loop's index",
        "loop_result": "a loop's result",
        "if_result": "a branch's result",
        "combined": "a combiner's argument",
    }
    return names.get(node.op, f"`{node.op}`")


def _quoted(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "none"

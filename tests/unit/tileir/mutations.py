"""One-step changes of a Tile IR text that change what the kernel does, may do or promises."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

Change = Callable[[re.Match[str]], str]


class Mutation(NamedTuple):
    """A kind of change: where it applies, and what it puts there."""

    name: str
    pattern: str
    change: str | Change
    everywhere: bool = False  #: a type's text, which must change wherever it stands


class Mutant(NamedTuple):
    """A changed text."""

    text: str
    line: int  #: of the change, from 1


def _next_integer(found: re.Match[str]) -> str:
    return f"{found.group(1)}{int(found.group(2)) + 1}>"


MUTATIONS = (
    Mutation("add becomes multiply", r"= addi ", "= muli "),
    Mutation("float add becomes subtract", r"= addf ", "= subf "),
    Mutation("float multiply becomes add", r"= mulf ", "= addf "),
    Mutation("maximum becomes minimum", r"= maxf ", "= minf "),
    Mutation("exclusive or becomes or", r"= xori (?=%result)", "= ori "),
    Mutation("exponential becomes another", r"= exp ", "= exp2 "),
    Mutation("flush dropped", r" flush_to_zero", ""),
    Mutation("flush added", r"(= addf %\S+ %\S+) +:", r"\1 flush_to_zero :"),
    Mutation("rounding dropped", r" rounding<approx>", ""),
    Mutation("rounding turned", r"rounding<negative_inf>", "rounding<positive_inf>"),
    Mutation("widening unsigned", r"(= exti %\S+) signed", r"\1 unsigned"),
    Mutation("comparison unsigned", r"(= cmpi \w+ %\S+ %\S+) signed", r"\1 unsigned"),
    Mutation("comparison signed", r"(= cmpi \w+ %\S+ %\S+) unsigned", r"\1 signed"),
    Mutation("predicate weakened", r"less_than ", "less_than_or_equal "),
    Mutation("predicate turned", r"greater_than ", "less_than "),
    Mutation("padding of a view", r"padding_value = \w+", "padding_value = nan", everywhere=True),
    Mutation("padding of a view dropped", r"padding_value = \w+, ", "", everywhere=True),
    Mutation("strides of a view", r"strides=\[\?,1\]", "strides=[?,2]", everywhere=True),
    Mutation("element type", r"tensor_view<\?x\?xf16", "tensor_view<?x?xbf16", everywhere=True),
    Mutation("integer constant", r"(constant <i\d\d: )(\d+)>", _next_integer),
    Mutation("float constant", r"constant <(f\d\d): [01]\.0+e\+00>", r"constant <\1: 5.000000e-01>"),
    Mutation("dimension of a reduction", r"dim=1 identities", "dim=0 identities"),
    Mutation("identity of a reduction", r"identities=\[[^ ]+", "identities=[0xFC00"),
    Mutation("direction of a scan", r"reverse=false", "reverse=true"),
    Mutation("permutation", r"\[1, 0\]", "[0, 1]"),
    Mutation("memory order of a load", r"(load_\w+) weak", r"\1 relaxed device"),
    Mutation("memory order of a store", r"(store_\w+) weak", r"\1 release device"),
    Mutation("memory order of an atomic", r"acq_rel", "relaxed"),
    Mutation("memory scope", r" device ", " sys "),
    Mutation("mode of an atomic", r", add, ", ", max, "),
    Mutation("token dropped", r" token ?= ?%(?!0)\w+", ""),
    Mutation("token lost in a join", r"(join_tokens .*), %\S+ :", r"\1 :"),
    Mutation("occupancy", r"occupancy = 2", "occupancy = 4"),
    Mutation("latency", r"latency = 2", "latency = 5"),
    Mutation("latency dropped", r" optimization_hints = <default = \{latency = 2\}>", ""),
    Mutation("hint of another kind", r"\{latency = 2\}", "{allow_tma = false}"),
    Mutation("alignment promised less", r"div_by<16>", "div_by<4>"),
    Mutation("divisibility promised more", r"div_by<8>", "div_by<32>"),
    Mutation("bound promised more", r"bounded<0, \?>", "bounded<1, ?>"),
    Mutation("operands of a division", r"= divf (%\S+), (%\S+)", r"= divf \2, \1"),
    Mutation("operands of a subtraction", r"= subf (%\S+), (%\S+)", r"= subf \2, \1"),
    Mutation("operands of a comparison", r"(= cmpi less_than) (%\S+), (%\S+), un", r"\1 \3, \2, un"),
    Mutation("order of indices", r"(view_tko [^\[]*)\[(%\w+), (%\w+)\]", r"\1[\3, \2]"),
    Mutation(
        "extent for stride", r"shape = \[(%\w+), (%\w+)\], strides = \[%\w+", r"shape = [\1, \2], strides = [\2"
    ),
    Mutation("order of extents", r"shape = \[(%\w+), (%\w+)\]", r"shape = [\2, \1]"),
    Mutation("loop starts elsewhere", r"in \((%\w+) to (\S+), step (%\w+)\)", r"in (\3 to \2, step \3)"),
    Mutation("loop steps otherwise", r"in \((%\w+) to (\S+), step (%\w+)\)", r"in (\1 to \2, step \2)"),
    Mutation("loop compares unsigned", r"= for %", "= for unsigned %"),
    Mutation("loop carries the old value", r"continue %16, %14", "continue %16, %iterArg1"),
    Mutation("loop continues with another value", r"continue %28", "continue %27"),
    Mutation("loop ends with another value", r"break %arg11", "break %arg9"),
    Mutation("branch on the opposite", r"(?<=yield )%27, %27", "%0, %27"),
    Mutation("mask dropped", r"(store_ptr_tko weak %\S+ %\w+), %\w+ (.*), tile<\w+xi1> ->", r"\1 \2 ->"),
    Mutation("store dropped", r"(?m)^ +%\w+ = store_ptr_tko .*\n(?=  return)", ""),
    Mutation("store repeated", r"(?m)^( +)%\w+( = store_.*)\n", r"\g<0>\1%again\2\n"),
    Mutation("another block index", r"(?<=[ \[])%blockId_x(?=[\],])(?!, %blockId_y)", "%blockId_y"),
    Mutation("another value stored", r"(store_view_tko weak) %26, (?=.*tile<32xi32>, part)", r"\1 %tile, "),
)


def mutants(text: str, mutation: Mutation) -> Iterator[Mutant]:
    """Every text that a mutation makes of a text, one step each."""
    changed = {found.group() for found in re.finditer(mutation.pattern, text)} if mutation.everywhere else None
    if changed is not None:
        for piece in sorted(changed):
            replaced = re.sub(mutation.pattern, mutation.change, piece)
            yield Mutant(text.replace(piece, replaced), text[: text.index(piece)].count("\n") + 1)
        return
    for found in re.finditer(mutation.pattern, text):
        new = mutation.change(found) if callable(mutation.change) else found.expand(mutation.change)
        line = text[: found.start()].count("\n") + 1
        yield Mutant(text[: found.start()] + new + text[found.end() :], line)

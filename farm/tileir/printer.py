"""A Module to Tile IR text that parses to the same module."""

from collections.abc import Iterable

from farm.tileir.model import Entry, Item, Module, Op, Region, Use, Value
from farm.tileir.span import Source
from farm.tileir.types import Type


def print_module(module: Module) -> str:
    """The module's text, an operation a line, locations inline where there are any."""
    lines: list[str] = []
    for op in module.globals:
        _print_op(op, 0, lines)
    for entry in module.entries:
        _print_entry(entry, lines)
    return "\n".join(lines) + "\n"


def _print_entry(entry: Entry, lines: list[str]) -> None:
    hints = "" if entry.hints is None else f" optimization_hints=<{entry.hints}>"
    lines.append(f"entry @{entry.symbol}({_arguments(entry.params)}){hints} {{")
    _print_block(entry.body, 1, lines)
    lines.append("}" + _location(entry.source))


def _print_block(region: Region, depth: int, lines: list[str]) -> None:
    for op in region.ops:
        _print_op(op, depth, lines)


def _print_op(op: Op, depth: int, lines: list[str]) -> None:
    indent = "  " * depth
    results = ", ".join(f"%{value.name}" + (f":{value.count}" if value.count > 1 else "") for value in op.results)
    head = f"{indent}{results} = {op.name}" if results else indent + op.name
    if op.name == "for":
        lines.append(f"{head} {_for_head(op)} {{")
    elif op.name == "loop":
        lines.append(" ".join(part for part in (head, _loop_head(op), "{") if part))
    elif op.name == "if":
        arrow = f" -> ({_types(op.result_types)})" if op.result_types else ""
        lines.append(f"{head} {_items(op.items)}{arrow} {{")
    else:
        body = _items(op.items)
        lines.append(head + (f" {body}" if body else "") + _signature(op))
        for region in op.regions:
            lines.append(f"{indent}({_arguments(region.args)}) {{")
            _print_block(region, depth + 1, lines)
            lines.append(indent + "}")
        lines[-1] += _location(op.source)
        return
    for position, region in enumerate(op.regions):
        if position:
            lines.append(indent + "} else {")
        _print_block(region, depth + 1, lines)
    lines.append(indent + "}" + _location(op.source))


def _signature(op: Op) -> str:
    operands = f" : {_types(op.operand_types)}" if op.operand_types else ""
    return operands + (f" -> {_types(op.result_types)}" if op.result_types else "")


def _for_head(op: Op) -> str:
    keyed = {item.key: item for item in op.items}
    index, *carried = op.regions[0].args
    bounds = f"{_word(keyed['in'])} to {_word(keyed['to'])}, step {_word(keyed['step'])}"
    head = f"%{index.name} in ({bounds}) : {index.type.text}"
    if None in keyed:
        head = f"unsigned {head}"
    if carried:
        head += f" {_iterated(carried, keyed['iter_values'])} -> ({_types(op.result_types)})"
    return head


def _loop_head(op: Op) -> str:
    parts = [_iterated(op.regions[0].args, item) for item in op.items]
    if op.operand_types:
        parts.append(f": {_types(op.operand_types)}")
        if op.result_types:
            parts.append(f"-> {_types(op.result_types)}")
    elif op.result_types:
        parts.append(f": {_types(op.result_types)}")
    return " ".join(parts)


def _iterated(args: Iterable[Value], inits: Item) -> str:
    pairs = ", ".join(f"%{arg.name} = {_text(init)}" for arg, init in zip(args, inits.words, strict=True))
    return f"iter_values({pairs})"


def _items(items: tuple[Item, ...]) -> str:
    text = ""
    for item in items:
        indexes = item.bracketed and item.key is None and any(isinstance(word, Use) for word in item.words)
        separator = ", " if item.comma else "" if indexes else " "
        words = ", ".join(_text(word) for word in item.words)
        body = f"[{words}]" if item.bracketed else words
        text += separator + (f"{item.key} = {body}" if item.key else body)
    return text.strip()


def _word(item: Item) -> str:
    return _text(item.words[0])


def _text(word: Use | str) -> str:
    if isinstance(word, str):
        return word
    return f"%{word.name}" + ("" if word.index is None else f"#{word.index}")


def _arguments(values: tuple[Value, ...]) -> str:
    return ", ".join(f"%{value.name}: {value.type.text}" for value in values)


def _types(types: tuple[Type, ...]) -> str:
    return ", ".join(type_.text for type_ in types)


def _location(source: Source | None) -> str:
    return "" if source is None else f" loc({_place(source)})"


def _place(source: Source) -> str:
    place = f'"{source.file}":{source.line}:{source.column}'
    return place if source.caller is None else f"callsite({place} at {_place(source.caller)})"

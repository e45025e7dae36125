"""Tile IR text to a Module.

Operations share one grammar: operands, keywords, lists and `key = value` pairs, then types. Only loops,
branches and combiners have forms of their own, so an operation that nobody has met yet is read as well.
"""

from farm.tileir.cursor import Cursor
from farm.tileir.lexer import Kind, Token
from farm.tileir.model import Entry, Item, Module, Op, Region, Use, Value
from farm.tileir.types import Type

_LITERALS = (Kind.WORD, Kind.ANGLE, Kind.BARE, Kind.NUMBER, Kind.STRING, Kind.SYMBOL)
#: Where the results of an operation without `->` take their type from, if not from the last type.
_RESULT_TYPE = {"mmaf_scaled": 2}
#: Words that begin something beside the operation that they follow.
_OUTER = frozenset({"entry", "cuda_tile.entry", "global", "cuda_tile.global"})


def parse(text: str) -> Module:
    """The module that a text describes; raises TileIRError with line, column and caret."""
    cursor = Cursor(text)
    wrapped = cursor.token.text in ("cuda_tile.module", "module")
    if wrapped:
        cursor.take()
        cursor.expect_kind(Kind.SYMBOL, "a module name")
        cursor.expect("{")
    globals_: list[Op] = []
    entries: list[Entry] = []
    while cursor.token.kind is not Kind.END and not (wrapped and cursor.sees("}")):
        if cursor.token.text in ("entry", "cuda_tile.entry"):
            entries.append(_entry(cursor))
        else:
            globals_.append(_op(cursor))
    if wrapped:
        cursor.expect("}")
        cursor.location()
    if cursor.token.kind is not Kind.END:
        cursor.fail("expected the end of the module")
    if not entries:
        cursor.fail("the module has no entry")
    return Module(globals=tuple(globals_), entries=tuple(entries))


def _entry(cursor: Cursor) -> Entry:
    start = cursor.take()
    symbol = cursor.expect_kind(Kind.SYMBOL, "an entry's name").text[1:]
    params = _arguments(cursor)
    hints = None
    if cursor.accept("optimization_hints"):
        cursor.expect("=")
        hints = cursor.expect_kind(Kind.BARE, "hints in `<>`").text[1:-1]
    body = Region(args=(), ops=_block(cursor))
    return Entry(
        symbol=symbol,
        params=params,
        hints=hints,
        body=body,
        span=cursor.span(start),
        source=cursor.location(),
    )


def _arguments(cursor: Cursor) -> tuple[Value, ...]:
    cursor.expect("(")
    found: list[Value] = []
    while not cursor.accept(")"):
        if found:
            cursor.expect(",")
        token = cursor.expect_kind(Kind.VALUE, "a parameter")
        cursor.expect(":")
        found.append(Value(name=token.text[1:], type=cursor.type(), span=cursor.span(token)))
        cursor.location()
    return tuple(found)


def _block(cursor: Cursor) -> tuple[Op, ...]:
    cursor.expect("{")
    ops: list[Op] = []
    while not cursor.accept("}"):
        ops.append(_op(cursor))
    return tuple(ops)


def _op(cursor: Cursor) -> Op:
    names: list[tuple[Token, int]] = []
    if cursor.token.kind is Kind.VALUE:
        while True:
            token = cursor.expect_kind(Kind.VALUE, "a result")
            count = 1
            if cursor.accept(":"):
                count = int(cursor.expect_kind(Kind.NUMBER, "a result count").text)
            names.append((token, count))
            if not cursor.accept(","):
                break
        cursor.expect("=")
    name = cursor.expect_kind(Kind.WORD, "an operation")
    spelled = name.text.removeprefix("cuda_tile.")
    if spelled == "for":
        items, operands, results, regions = _for(cursor)
    elif spelled == "loop":
        items, operands, results, regions = _loop(cursor)
    elif spelled == "if":
        items, operands, results, regions = _if(cursor)
    else:
        items, operands, results, regions = _plain(cursor)
        if spelled in ("reduce", "scan") and cursor.sees("("):
            regions = (Region(args=_arguments(cursor), ops=_block(cursor)),)
    return Op(
        name=spelled,
        results=_results(cursor, spelled, names, operands, results),
        items=items,
        operand_types=operands,
        result_types=results,
        regions=regions,
        span=cursor.span(names[0][0] if names else name),
        source=cursor.location(),
    )


def _results(
    cursor: Cursor,
    name: str,
    names: list[tuple[Token, int]],
    operands: tuple[Type, ...],
    results: tuple[Type, ...],
) -> tuple[Value, ...]:
    if not names:
        return ()
    if not results:
        if not operands:
            cursor.text.fail(names[0][0].offset, "this result has no type")
        at = _RESULT_TYPE.get(name, len(operands) - 1)
        results = (operands[min(at, len(operands) - 1)],)
    found: list[Value] = []
    position = 0
    for token, count in names:
        type_ = results[min(position, len(results) - 1)]
        found.append(Value(name=token.text[1:], type=type_, count=count, span=cursor.span(token)))
        position += count
    return tuple(found)


_Parts = tuple[tuple[Item, ...], tuple[Type, ...], tuple[Type, ...], tuple[Region, ...]]


def _plain(cursor: Cursor) -> _Parts:
    items: list[Item] = []
    comma = False
    while True:
        token = cursor.token
        if token.kind is Kind.WORD and cursor.ahead().text == "=":
            items.append(_pair(cursor, comma))
        elif token.kind is Kind.WORD and token.text == "loc" and cursor.ahead().text == "(":
            break
        elif token.kind is Kind.VALUE:
            items.append(Item(key=None, words=(cursor.use(),), comma=comma))
        elif token.text == "[":
            items.append(Item(key=None, words=_list(cursor), bracketed=True, comma=comma))
        elif token.kind in _LITERALS and token.text not in _OUTER:
            items.append(Item(key=None, words=(cursor.take().text,), comma=comma))
        else:
            break
        comma = cursor.accept(",")
    if comma:
        cursor.fail("expected something after the comma")
    operands: tuple[Type, ...] = ()
    results: tuple[Type, ...] = ()
    if cursor.accept(":"):
        operands = cursor.types()
        if cursor.accept("->"):
            results = cursor.types()
    return tuple(items), operands, results, ()


def _pair(cursor: Cursor, comma: bool) -> Item:
    key = cursor.take().text
    cursor.expect("=")
    if cursor.sees("["):
        return Item(key=key, words=_list(cursor), bracketed=True, comma=comma)
    if cursor.token.kind is Kind.VALUE:
        return Item(key=key, words=(cursor.use(),), comma=comma)
    if cursor.token.kind not in _LITERALS:
        cursor.fail(f"expected the value of `{key}`")
    return Item(key=key, words=(cursor.take().text,), comma=comma)


def _list(cursor: Cursor) -> tuple[Use | str, ...]:
    cursor.expect("[")
    found: list[Use | str] = []
    while not cursor.accept("]"):
        if found:
            cursor.expect(",")
        if cursor.token.kind is Kind.VALUE:
            found.append(cursor.use())
            continue
        words: list[str] = []
        while cursor.token.kind in _LITERALS or cursor.sees(":"):
            words.append(cursor.take().text)
        if not words:
            cursor.fail("expected a list element")
        found.append(" ".join(words))
    return tuple(found)


def _iterated(cursor: Cursor) -> tuple[list[Token], tuple[Use, ...]]:
    names: list[Token] = []
    inits: list[Use] = []
    if cursor.accept("iter_values"):
        cursor.expect("(")
        while not cursor.accept(")"):
            if names:
                cursor.expect(",")
            names.append(cursor.expect_kind(Kind.VALUE, "a carried value"))
            cursor.expect("=")
            inits.append(cursor.use())
    return names, tuple(inits)


def _carried(cursor: Cursor, names: list[Token], types: tuple[Type, ...]) -> tuple[Value, ...]:
    if len(names) != len(types):
        cursor.fail(f"{len(names)} carried values but {len(types)} types")
    return tuple(
        Value(name=name.text[1:], type=type_, span=cursor.span(name))
        for name, type_ in zip(names, types, strict=True)
    )


def _for(cursor: Cursor) -> _Parts:
    items: list[Item] = []
    if cursor.accept("unsigned"):
        items.append(Item(key=None, words=("unsigned",)))
    index = cursor.expect_kind(Kind.VALUE, "the loop's index")
    cursor.expect("in")
    cursor.expect("(")
    items.append(Item(key="in", words=(cursor.use(),)))
    cursor.expect("to")
    items.append(Item(key="to", words=(cursor.use(),)))
    cursor.expect(",")
    cursor.expect("step")
    items.append(Item(key="step", words=(cursor.use(),)))
    cursor.expect(")")
    cursor.expect(":")
    index_type = cursor.type()
    names, inits = _iterated(cursor)
    results: tuple[Type, ...] = ()
    if names:
        items.append(Item(key="iter_values", words=inits))
        cursor.expect("->")
        results = _parenthesised(cursor)
    first = Value(name=index.text[1:], type=index_type, span=cursor.span(index))
    args = (first, *_carried(cursor, names, results))
    return tuple(items), (index_type,), results, (Region(args=args, ops=_block(cursor)),)


def _loop(cursor: Cursor) -> _Parts:
    names, inits = _iterated(cursor)
    items = (Item(key="iter_values", words=inits),) if names else ()
    types: tuple[Type, ...] = ()
    results: tuple[Type, ...] = ()
    if cursor.accept(":"):
        types = cursor.types()
        if cursor.accept("->"):
            results = cursor.types()
        elif not names:
            types, results = (), types
    args = _carried(cursor, names, types)
    return items, types, results, (Region(args=args, ops=_block(cursor)),)


def _if(cursor: Cursor) -> _Parts:
    items = (Item(key=None, words=(cursor.use(),)),)
    results = _parenthesised(cursor) if cursor.accept("->") else ()
    regions = [Region(args=(), ops=_block(cursor))]
    if cursor.accept("else"):
        regions.append(Region(args=(), ops=_block(cursor)))
    return items, (), results, tuple(regions)


def _parenthesised(cursor: Cursor) -> tuple[Type, ...]:
    cursor.expect("(")
    types = cursor.types()
    cursor.expect(")")
    return types

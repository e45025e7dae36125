"""Reading and printing Tile IR text."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.tileir import Module, Source, Span, TileIRError, entry_parameters, parse, print_module
from farm.tileir.model import Op
from tests.unit.tileir.kernel import scalar

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.mlir"))
PAIRS = sorted((Path(__file__).parent / "pairs").glob("*.mlir"))


def ops(module: Module) -> list[Op]:
    return list(module.entries[0].body.ops)


@pytest.mark.parametrize("file", [*KERNELS, *PAIRS], ids=lambda file: file.name)
def test_printing_what_was_read_reads_as_the_same(file: Path) -> None:
    module = parse(file.read_text())
    text = print_module(module)
    assert parse(text) == module
    assert print_module(parse(text)) == text


@pytest.mark.parametrize("file", KERNELS, ids=lambda file: file.name)
def test_what_is_printed_differs_from_the_disassembler_in_white_space_alone(file: Path) -> None:
    if file.name.endswith(".g.mlir"):
        return
    text = file.read_text()
    assert "".join(print_module(parse(text)).split()) == "".join(text.split())


def test_values_and_operations_know_their_place() -> None:
    text = scalar("  %v = addi %n, %m : tile<i32>")
    line = text.split("\n").index("  %v = addi %n, %m : tile<i32>") + 1
    op = next(op for op in ops(parse(text)) if op.name == "addi")
    assert op.span == Span(line=line, column=3)
    assert [use.span.column for use in op.uses] == [13, 17]
    assert parse(text).entries[0].params[0].span == Span(line=1, column=10)


def test_locations_lead_to_the_source_through_calls() -> None:
    module = parse((Path(__file__).parent / "kernels" / "scaled_rows.g.mlir").read_text())
    sources = {op.source for op in ops(module)}
    files = {source.file for source in sources if source is not None}
    assert any(file.endswith("_stub.py") for file in files)
    outer = {source.outermost.file for source in sources if source is not None}
    assert outer == {"/src/kernels.py"}


def test_an_inline_location_is_read() -> None:
    text = (
        'entry @k() {\n  %t = make_token : token loc(callsite("a.rs":3:4 at "b.rs":5:6))\n  return loc(unknown)\n}'
    )
    first, last = ops(parse(text))
    assert first.source == Source(file="a.rs", line=3, column=4, caller=Source(file="b.rs", line=5, column=6))
    assert last.source is None


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("entry @k( {\n}", 1, 11, "a parameter"),
        ("entry @k() {\n  %a = constant <i32: 1> : 5\n}", 2, 28, "a type"),
        ("entry @k() {\n  %a = addi %b, : tile<i32>\n}", 2, 17, "after the comma"),
        ("entry @k() {\n  ; \n}", 2, 3, "no Tile IR token"),
        ("entry @k() {\n  return\n", 3, 1, "the end"),
        ("entry @k() {\n  for %i in (%a, %b) : tile<i32> {\n  }\n}", 2, 16, "`to`"),
        ("", 1, 1, "no entry"),
        ("entry @k() {\n  %a = make_token\n}", 2, 3, "no type"),
    ],
)
def test_an_error_shows_line_column_and_caret(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(TileIRError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert said in str(caught.value)
    shown = text.split("\n")[line - 1]
    if shown:
        assert str(caught.value).endswith(f"\n{shown}\n{' ' * (column - 1)}^")
    assert caught.value.exit_code == 2


def test_an_unknown_operation_is_read_like_any_other() -> None:
    op = '%a, %b = new_op fast<2> "x", [1, 2] mode = @m : tile<i32> -> tile<i32>, token'
    text = f"entry @k() {{\n  {op}\n  return\n}}"
    module = parse(text)
    assert parse(print_module(module)) == module
    assert [value.type.text for value in ops(module)[0].results] == ["tile<i32>", "token"]


def test_a_module_around_the_entries_is_accepted() -> None:
    text = (
        "cuda_tile.module @m {\n  entry @a() {\n    return\n  }\n  entry @b(%x: tile<f32>) {\n    return\n  }\n}"
    )
    module = parse(text)
    assert [entry.symbol for entry in module.entries] == ["a", "b"]
    assert [type_.bytes for type_ in entry_parameters(module, "b")] == [4]
    with pytest.raises(KeyError):
        entry_parameters(module, "c")


def test_parameters_have_sizes() -> None:
    types = ("ptr<f16>", "i32", "i1", "i64", "f64", "bf16")
    text = "entry @k(" + ", ".join(f"%a{at}: tile<{type_}>" for at, type_ in enumerate(types)) + ") {\n}"
    assert [type_.bytes for type_ in entry_parameters(parse(text))] == [8, 4, 1, 8, 8, 2]


NAMES = st.sampled_from(["%a", "%b", "%c#1", "%for_1", "%cst_-1_i32", "%0"])
ITEMS = st.one_of(
    NAMES,
    st.sampled_from(["signed", "weak", "flush_to_zero", "rounding<approx>", "less_than", "token = %t", "dim = 1"]),
    st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "[" + ", ".join(names) + "]"),
    st.lists(st.integers(-9, 9).map(str), min_size=1, max_size=3).map(
        lambda words: "p = [" + ", ".join(words) + "]"
    ),
)
TYPES = st.sampled_from(
    [
        "tile<i32>",
        "tile<4x8xptr<f16>>",
        "token",
        "partition_view<tile=(4x8), padding_value = zero, tensor_view<?x8xf32, strides=[8,1]>, dim_map=[1, 0]>",
    ]
)


@st.composite
def lines(draw: st.DrawFn, depth: int = 0) -> list[str]:
    found: list[str] = []
    for at in range(draw(st.integers(0, 4))):
        form = draw(st.sampled_from(["plain", "plain", "for", "if", "loop", "reduce"] if depth < 2 else ["plain"]))
        type_ = draw(TYPES)
        location = draw(st.sampled_from(["", ' loc("k.py":1:2)', ' loc(callsite("k.py":1:2 at "m.py":3:4))']))
        inner = draw(lines(depth + 1)) if form != "plain" else []
        if form == "plain":
            items = ", ".join(draw(st.lists(ITEMS, min_size=1, max_size=4)))
            arrow = draw(st.sampled_from(["", " -> token", " -> tile<i32>, token"]))
            found.append(f"%r{at} = some_op {items} : {type_}{arrow}{location}")
        elif form == "for":
            found.append(
                f"%f{at} = for %i in (%a to %b, step %c) : tile<i32> iter_values(%x = %a) -> ({type_}) {{"
            )
            found += [*inner, f"continue %x : {type_}", "}" + location]
        elif form == "if":
            found += ["if %a {", *inner, "} else {", *inner, "}" + location]
        elif form == "loop":
            found += [f"%l{at} = loop iter_values(%x = %a) : {type_} -> token {{", *inner, "break %t : token", "}"]
        else:
            found += [f"%d{at} = reduce %a dim=0 identities=[0 : i32] : {type_} -> tile<i32>", "(%x: tile<i32>) {"]
            found += [*inner, "yield %x : tile<i32>", "}" + location]
    return found


@given(lines())
@settings(max_examples=40, deadline=None)
def test_any_text_of_the_grammar_survives_printing_and_reading(body: list[str]) -> None:
    module = parse("entry @k(%a: tile<i32>) {\n" + "\n".join(body) + "\nreturn\n}\n")
    assert parse(print_module(module)) == module


@given(st.text(alphabet='%@#<>(){}[]=,:->." \nabtile0x19', max_size=60))
@settings(max_examples=100, deadline=None)
def test_no_text_ends_in_anything_but_a_module_or_the_error(text: str) -> None:
    with contextlib.suppress(TileIRError):
        assert isinstance(parse("entry @k() {" + text), Module)

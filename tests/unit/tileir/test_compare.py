"""What a comparison says beside same and different."""

from pathlib import Path

import pytest

from farm import codec
from farm.tileir import Comparison, DifferenceKind, ParameterMapping, TileIRError, compare, parse
from tests.unit.tileir.kernel import kernel, scalar, value

KERNELS = Path(__file__).parent / "kernels"


def scaled(params: str, body: str, symbol: str = "k") -> str:
    return f"entry @{symbol}({params}) {{\n{body}  return\n}}\n"


REFERENCE = scaled(
    "%x: tile<ptr<f32>>, %n: tile<i32>, %stride: tile<i32>, %y: tile<ptr<f32>>, %m: tile<i32>, %s: tile<f32>",
    "  %t = make_token : token\n  %bx, %by, %bz = get_tile_block_id : tile<i32>\n"
    "  %at = muli %bx, %stride : tile<i32>\n"
    "  %in = cmpi less_than %bx, %n, signed : tile<i32> -> tile<i1>\n"
    "  %px = offset %x, %at : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
    "  %a, %ta = load_ptr_tko weak %px, %in token=%t : tile<ptr<f32>>, tile<i1> -> tile<f32>, token\n"
    "  %b = mulf %a, %s : tile<f32>\n"
    "  %py = offset %y, %at : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
    "  %w = store_ptr_tko weak %py, %b, %in token=%t : tile<ptr<f32>>, tile<f32>, tile<i1> -> token\n",
)
CANDIDATE_PARAMS = "%s: tile<f32>, %y: tile<ptr<f32>>, %x: tile<ptr<f32>>, %stride: tile<i32>, %n: tile<i32>"


def with_params(text: str, params: str, symbol: str) -> str:
    body = text.split("\n", 1)[1]
    return f"entry @{symbol}({params}) {{\n{body}"


def test_identical_texts_need_no_rule() -> None:
    text = (KERNELS / "product.mlir").read_text()
    result = compare(parse(text), parse(text.replace("%tile", "%other").replace("%pview", "%view")))
    assert result == Comparison(same=True, rules=(), difference=None, parameters=tuple(range(15)))


def test_other_parameters_are_matched_by_their_use() -> None:
    result = compare(parse(REFERENCE), parse(with_params(REFERENCE, CANDIDATE_PARAMS, "rust_entry")))
    assert result.same, result.difference
    assert result.parameters == (5, 3, 0, 2, 1)


def test_parameters_of_one_symbol_and_one_type_list_are_matched_by_position() -> None:
    exchanged = REFERENCE.replace("muli %bx, %stride", "muli %bx, %n", 1).replace(
        "_than %bx, %n", "_than %bx, %stride"
    )
    result = compare(parse(REFERENCE), parse(exchanged))
    assert not result.same
    by_use = compare(parse(REFERENCE), parse(exchanged), mapping=ParameterMapping.USE)
    assert by_use.same
    assert by_use.parameters == (0, 2, 1, 3, None, 5)
    renamed = exchanged.replace("@k(", "@other(")
    assert compare(parse(REFERENCE), parse(renamed)).parameters == by_use.parameters
    assert not compare(parse(REFERENCE), parse(renamed), mapping=ParameterMapping.POSITION).same


def test_one_parameter_cannot_stand_for_two() -> None:
    one = with_params(
        REFERENCE, "%x: tile<ptr<f32>>, %n: tile<i32>, %y: tile<ptr<f32>>, %s: tile<f32>", "rust_entry"
    )
    result = compare(parse(REFERENCE), parse(one.replace("%stride", "%n")))
    assert not result.same
    assert result.difference is not None
    assert "stands for" in result.difference.sentence


def test_two_parameters_may_stand_for_one() -> None:
    both = (
        "%x: tile<ptr<f32>>, %n: tile<i32>, %k: tile<i32>, %stride: tile<i32>, %y: tile<ptr<f32>>, %s: tile<f32>"
    )
    text = scaled("", "").split("\n")[0] and with_params(REFERENCE, both, "rust_entry")
    text = text.replace("offset %y, %at", "offset %y, %at2").replace(
        "  %py =", "  %at2 = muli %bx, %k : tile<i32>\n  %py ="
    )
    result = compare(parse(REFERENCE), parse(text))
    assert result.same, result.difference
    assert result.parameters == (0, 1, 2, 2, 3, 5)


@pytest.mark.parametrize("candidate", ["div_by<4>", "div_by<16>", "bounded<0, ?>"])
def test_promising_more_less_or_something_else_is_a_difference(candidate: str) -> None:
    form = "  %a = assume {}, %n : tile<i32>\n  %v = addi %a, %m : tile<i32>"
    reference = parse(scalar(form.format("div_by<8>")))
    result = compare(reference, parse(scalar(form.format(candidate))))
    assert result.difference is not None
    assert result.difference.kind is DifferenceKind.FACT
    assert candidate in result.difference.sentence


def test_a_promise_made_under_a_condition_is_not_one_made_always() -> None:
    store = "%s = store_ptr_tko weak %q, %zero token=%t : tile<ptr<f32>>, tile<f32> -> token\n"
    promise, end = "  %a = assume div_by<8>, %n : tile<i32>\n", "  %v = addi %n, %m : tile<i32>"
    always = scalar(f"{promise}  if %c {{\n    {store}  }}\n{end}")
    sometimes = scalar(f"  if %c {{\n  {promise}    {store}  }}\n{end}")
    result = compare(parse(always), parse(sometimes))
    assert result.difference is not None
    assert result.difference.kind is DifferenceKind.FACT
    assert compare(parse(sometimes), parse(sometimes.replace("%s =", "%u ="))).same


@pytest.mark.parametrize(
    ("reference", "candidate", "gpu", "same"),
    [
        ("<default = {occupancy = 2}>", "<sm_90 = {occupancy = 2}>", None, True),
        ("<default = {occupancy = 2}>", "<sm_90 = {occupancy = 2}>", "sm_90", True),
        ("<default = {occupancy = 2}>", "<sm_90 = {occupancy = 2}>", "sm_100", False),
        ("<default = {occupancy = 4}, sm_90 = {occupancy = 2}>", "<sm_90 = {occupancy = 2}>", "sm_90", True),
        (
            "<default = {occupancy = 4}, sm_90 = {num_cta_in_cga = 2}>",
            "<sm_90 = {num_cta_in_cga = 2}>",
            None,
            False,
        ),
        ("<default = {}>", "", None, True),
        ("<default = {num_cta_in_cga = 2}>", "", None, False),
    ],
)
def test_hints_are_compared_as_they_hold_on_a_target(
    reference: str, candidate: str, gpu: str | None, same: bool
) -> None:
    plain = scalar("  %v = addi %n, %m : tile<i32>")
    texts = [
        plain.replace(") {", f") optimization_hints={hints} {{" if hints else ") {", 1)
        for hints in (reference, candidate)
    ]
    result = compare(parse(texts[0]), parse(texts[1]), gpu=gpu)
    assert result.same == same
    assert same or (result.difference is not None and result.difference.kind is DifferenceKind.HINT)


def test_a_difference_of_meaning_is_reported_before_one_of_hints() -> None:
    load = "  %v, %tv = load_ptr_tko weak %{}b token=%t{} : tile<8xptr<f32>> -> tile<8xf32>, token"
    reference = parse(value(load.format("p", " optimization_hints = <default = {latency = 2}>")))
    result = compare(reference, parse(value(load.format("q", ""))))
    assert result.difference is not None
    assert result.difference.kind is not DifferenceKind.HINT


def test_a_missing_store_is_pointed_at() -> None:
    store = "  %s = store_ptr_tko weak %pb, %zeros token=%t : tile<8xptr<f32>>, tile<8xf32> -> token\n"
    result = compare(parse(kernel(store)), parse(kernel("")))
    assert result.difference is not None
    assert result.difference.kind is DifferenceKind.EFFECT
    assert result.difference.candidate is None
    assert result.difference.reference is not None
    assert result.difference.reference.operation == "store_ptr_tko"


def test_both_source_places_are_named() -> None:
    text = (KERNELS / "scaled_rows.g.mlir").read_text()
    result = compare(parse(text), parse(text.replace("= subf %", "= addf %", 1)))
    assert result.difference is not None
    assert result.difference.reference is not None
    assert result.difference.reference.source is not None
    assert result.difference.reference.source.file == "/src/kernels.py"
    assert "/src/kernels.py" in str(result.difference)


def test_a_comparison_is_json() -> None:
    text = (KERNELS / "product.mlir").read_text()
    for changed in (text, text.replace("dim=1", "dim=0")):
        result = compare(parse(text), parse(changed))
        assert codec.decode(Comparison, codec.encode(result)) == result


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  %v = addi %n, %nowhere : tile<i32>", "not defined"),
        ("  %v = addi %n, %m : tile<i64>", "tile<i64>"),
        ("  %v = select %c, %n : tile<i1>, tile<i32>", "select"),
        ("  %v = constant <i32: x> : tile<i32>", "no i32"),
        ("  %v = constant <f32: 1.0> : tile<i32>", "cannot be"),
        ("  %a:2 = addi %n, %m : tile<i32>\n  %v = addi %a#2, %n : tile<i32>", "results"),
        ("  %v = addi %n, %m : tile<i32>\n  if %c {\n    break\n  }", "outside a loop"),
        ("  %v = if %c -> (tile<i32>) {\n    yield %n : tile<i32>\n  } else {\n  }", "does not yield"),
        ("  %v = for %i in (%n to %m, step %n) : tile<i32> iter_values(%x = %n) -> (tile<i32>) {\n  }", "pass on"),
    ],
)
def test_a_text_that_makes_no_sense_is_refused_with_its_place(body: str, said: str) -> None:
    good = parse(scalar("  %v = addi %n, %m : tile<i32>"))
    with pytest.raises(TileIRError, match=said) as caught:
        compare(good, parse(scalar(body)))
    assert caught.value.line > 8


def test_modules_of_several_entries_are_refused() -> None:
    one = scalar("  %v = addi %n, %m : tile<i32>")
    with pytest.raises(TileIRError, match="2 entries"):
        compare(parse(one), parse(one + one.replace("@k", "@l")))

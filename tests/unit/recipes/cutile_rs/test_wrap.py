"""Line breaks of generated Rust."""

import pytest

from farm.recipes.cutile_rs.kernel.wrap import split, wrapped

PAD = "        "


def lines(*texts: str) -> str:
    return "".join(f"{PAD}{text}\n" for text in texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let a: i32 = f(b, c);", lines("let a: i32 = f(b, c);")),
        (
            "let clipped: Tile<f32, { [TILE] }> = minf(max_of, hi_tile_wide, nan::Disabled, ftz::Disabled);",
            lines(
                "let clipped: Tile<f32, { [TILE] }> =",
                "    minf(max_of, hi_tile_wide, nan::Disabled, ftz::Disabled);",
            ),
        ),
        (
            "let t: Tile<E, { [N] }> = load(&x_tiles, [i], ordering::Weak, scope::TileBlock, None, tma::Enabled);",
            lines(
                "let t: Tile<E, { [N] }> = load(",
                "    &x_tiles,",
                "    [i],",
                "    ordering::Weak,",
                "    scope::TileBlock,",
                "    None,",
                "    tma::Enabled,",
                ");",
            ),
        ),
        (
            "let wide: Tile<f32, { [TILE] }> = lo_tile.reshape(const_shape![1]).broadcast(const_shape![TILE]);",
            lines(
                "let wide: Tile<f32, { [TILE] }> = lo_tile",
                "    .reshape(const_shape![1])",
                "    .broadcast(const_shape![TILE]);",
            ),
        ),
        (
            "let at: P = if N == 1i32 { unsafe { assume_div_by::<_, ALIGN>(at) } } else { at };",
            lines(
                "let at: P = if N == 1i32 {",
                "    unsafe { assume_div_by::<_, ALIGN>(at) }",
                "} else {",
                "    at",
                "};",
            ),
        ),
        (
            "let s: Array<{ [-1] }> = Array::<{ [-1] }> { dims: &[out_stride0] };",
            lines("let s: Array<{ [-1] }> = Array::<{ [-1] }> {", "    dims: &[out_stride0],", "};"),
        ),
    ],
)
def test_lines_break_where_the_formatter_breaks_them(text: str, expected: str) -> None:
    assert wrapped(PAD + text) == expected


def test_short_names_share_lines() -> None:
    text = f"{PAD}let v: Tile<E, {{ [N] }}> = f({', '.join(f'name_{n}' for n in range(12))});"
    assert max(map(len, wrapped(text).splitlines())) <= 100
    assert len(wrapped(text).splitlines()) == 4


def test_a_long_comment_goes_on_in_the_next_line() -> None:
    found = wrapped(f"{PAD}/// {'word ' * 40}").splitlines()
    assert len(found) > 1
    assert all(line.startswith(f"{PAD}/// word") and len(line) <= 100 for line in found)


def test_separators_in_brackets_do_not_split() -> None:
    assert split("f::<_, 4>(a, b), [c, d], e", ", ") == ["f::<_, 4>(a, b)", "[c, d]", "e"]

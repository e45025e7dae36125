"""Speedups of many ops as one picture and one table. Pure; the picture is an SVG that needs no other file."""

from collections.abc import Iterator, Sequence
from html import escape

from farm.gates import GateName, Ruling
from farm.measured.model import Measured

#: Pixels: a bar's row, and the space beside and around the bars.
_ROW, _LEFT, _PLOT, _RIGHT, _TOP, _BOTTOM = 26, 190, 600, 170, 60, 46
#: Colours on light and on dark.
_INK, _SOFT = ("#1f2328", "#e6edf3"), ("#59636e", "#9198a1")
_RULE, _PAPER = ("#d1d9e0", "#3d444d"), ("#ffffff", "#0d1117")
_HALO = "stroke-width:5;stroke-linejoin:round;paint-order:stroke"
_COLOURS = {"pass": ("#4aa57f", "#3a8f6c"), "open": ("#d4a72c", "#9e7b1a"), "fail": ("#d9695f", "#b5473e")}
#: What the three gates came to, worst first.
_WORDS = {
    Ruling.FAIL: "fail",
    Ruling.INFRA: "open",
    Ruling.AMBIGUOUS: "open",
    Ruling.NOT_RUN: "open",
    Ruling.PASS: "pass",
}


def verdict(measured: Measured) -> Ruling:
    """The worst of the three gates: a failed one before one that is open."""
    rulings = [result.ruling for result in measured.gates]
    return next((ruling for ruling in _WORDS if ruling in rulings), Ruling.NOT_RUN)


def bar_chart(measured: Sequence[Measured], *, title: str, limit: float = 0.95) -> str:
    """An SVG: a bar an op from zero to its geomean, a whisker for its 95 % interval, a dashed line at the limit.

    Colour says what all three gates came to, and the text beside the bar says it as well. Ops without a
    geomean have no bar: the table has their reason. Readable on light and on dark.
    """
    drawn = sorted((m for m in measured if m.ratio is not None), key=lambda m: (-(m.ratio or 0.0), m.op))
    longest = max([1.05, *(m.high for m in drawn if m.high is not None)])
    width, base = _LEFT + _PLOT + _RIGHT, _TOP + _ROW * len(drawn)
    scale = _PLOT / longest
    tick = 0.2 if longest < 2.0 else 0.5 if longest < 5.0 else 10.0 ** len(str(int(longest / 10)))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="farm" viewBox="0 0 {width} {base + _BOTTOM}" '
        f'width="{width}" height="{base + _BOTTOM}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{_style()}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text class="ink" x="16" y="26" font-weight="600">{escape(title)}</text>',
        '<text class="soft" x="16" y="45">geomean of source time / target time with its 95 % interval</text>',
    ]
    for count in range(int(longest / tick) + 1):
        x = _LEFT + scale * tick * count
        parts.append(f'<line class="rule" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{base}"/>')
        text = f"{tick * count:g}"
        parts.append(f'<text class="soft" x="{x:.1f}" y="{base + 17}" text-anchor="middle">{text}</text>')
    for number, one in enumerate(drawn):
        parts.extend(_bar(one, _TOP + _ROW * number, scale))
    x = _LEFT + scale * limit
    parts.append(f'<line class="limit" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{base + 22}"/>')
    parts.append(f'<text class="ink" x="{x:.1f}" y="{base + 36}" text-anchor="middle">limit {limit:g}</text>')
    parts.extend(_labels(one, _TOP + _ROW * number, scale) for number, one in enumerate(drawn))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(one: Measured, top: float, scale: float) -> Iterator[str]:
    ratio, low, high = one.ratio or 0.0, one.low or 0.0, one.high or 0.0
    word = _WORDS[verdict(one)]
    middle = top + _ROW / 2
    left, right = _LEFT + scale * low, _LEFT + scale * high
    yield (
        f'<rect class="{word}" x="{_LEFT}" y="{top + 4:g}" width="{scale * ratio:.1f}" height="{_ROW - 8}">'
        f"<title>{escape(one.op)}: {_interval(one)}</title></rect>"
    )
    yield (
        f'<path class="whisker" d="M{left:.1f} {middle - 4:g}v8M{left:.1f} {middle:g}H{right:.1f}'
        f'M{right:.1f} {middle - 4:g}v8"/>'
    )


def _labels(one: Measured, top: float, scale: float) -> str:
    """Name and result, above everything that they might cross."""
    x, y = _LEFT + scale * (one.high or 0.0) + 8, top + _ROW / 2 + 4
    return (
        f'<text class="ink" x="{_LEFT - 8}" y="{y:g}" text-anchor="end">{escape(one.op)}</text>\n'
        f'<text class="ink halo" x="{x:.1f}" y="{y:g}">{one.ratio or 0.0:.3f} {verdict(one).value}</text>'
    )


def _style() -> str:
    """The same rules twice, since not every reader of SVG knows variables."""
    rules = []
    for theme in (0, 1):
        lines = [
            f".farm .paper{{fill:{_PAPER[theme]}}} .farm .ink{{fill:{_INK[theme]}}}",
            f".farm .soft{{fill:{_SOFT[theme]}}} .farm .halo{{stroke:{_PAPER[theme]};{_HALO}}}",
            f".farm .rule{{stroke:{_RULE[theme]}}} .farm .limit{{stroke:{_INK[theme]};stroke-dasharray:5 3}}",
            f".farm .whisker{{stroke:{_INK[theme]};stroke-width:1.5;fill:none}}",
            *(f".farm .{word}{{fill:{colours[theme]}}}" for word, colours in _COLOURS.items()),
        ]
        rules.append("\n".join(lines))
    light, dark = rules
    font = ".farm text{font:13px system-ui,sans-serif}"
    return f"{font}\n{light}\n@media (prefers-color-scheme:dark){{\n{dark}\n}}\n"


def table(measured: Sequence[Measured]) -> str:
    """A Markdown table with a line an op in the order of their names, failed ones with their reason."""
    lines = ["| op | speedup | 95 % interval | configs | rows | verdict | why |", "|---|---|---|---|---|---|---|"]
    for one in sorted(measured, key=lambda m: (m.op, m.gpu, m.subject)):
        passed = sum(line.target == "passed" for line in one.rows)
        cells = (
            one.op,
            "" if one.ratio is None else f"{one.ratio:.3f}",
            "" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}",
            str(sum(line.ratio is not None for line in one.configs)),
            f"{passed} of {one.rows_expected}",
            verdict(one).value,
            why(one),
        )
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def why(one: Measured) -> str:
    """What the gates that did not pass say, the failed ones alone where there are any."""
    worst = verdict(one)
    if worst is Ruling.PASS:
        return ""
    found = (one.gate(name) for name in GateName if one.gate(name).ruling is worst)
    return "; ".join(f"{result.gate.value}: {result.summary}" for result in found)


def _interval(one: Measured) -> str:
    return f"{one.ratio or 0.0:.3f} [{one.low or 0.0:.3f}, {one.high or 0.0:.3f}]"


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

"""The picture and the table of many ops."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from farm.gates import Ruling
from farm.measured.chart import bar_chart, table, verdict
from farm.measured.model import Measured
from farm.measured.records import Outcome, Phase
from farm.measured.ruling import rule
from tests.unit.farm.measured.builders import KEYS, SETTINGS, probe, row, rows, timing

SVG = "{http://www.w3.org/2000/svg}"


def op(name: str, ratio: float, *more: object) -> Measured:
    return replace(rule([*rows(), probe(), *timing(ratio), *more], SETTINGS), op=name)


MANY = [
    op("slow", 0.8),
    op("even", 1.0),
    op("fast|<b>", 1.2),
    op("wrong", 1.1, row(KEYS[0], Phase.TARGET, Outcome.FAILED, reason="off by | 3\nat x")),
    replace(rule([], SETTINGS), op="unmeasured"),
]


def test_every_op_with_a_geomean_has_a_bar_as_long_as_its_speedup() -> None:
    root = ET.fromstring(bar_chart(MANY, title="A & B", limit=0.95))
    bars = {rect.find(f"{SVG}title").text.split(":")[0]: rect for rect in root.iter(f"{SVG}rect") if len(rect)}
    assert list(bars) == ["fast|<b>", "wrong", "even", "slow"]
    lengths = {name: float(rect.get("width")) for name, rect in bars.items()}
    for one in MANY[:4]:
        assert lengths[one.op] / lengths["even"] == pytest.approx(one.ratio / MANY[1].ratio, rel=1e-3)
    limit = next(line for line in root.iter(f"{SVG}line") if line.get("class") == "limit")
    start = float(bars["even"].get("x"))
    assert (float(limit.get("x1")) - start) / lengths["even"] == pytest.approx(0.95 / MANY[1].ratio, rel=1e-3)
    assert [bars[name].get("class") for name in bars] == ["pass", "fail", "pass", "fail"]


def test_the_picture_needs_no_other_file_and_knows_both_themes() -> None:
    svg = bar_chart(MANY, title="t")
    assert "href" not in svg
    assert "url(" not in svg
    assert "prefers-color-scheme:dark" in svg
    assert {e.get("class") for e in ET.fromstring(svg).iter() if e.get("class")} >= {
        "ink",
        "soft",
        "rule",
        "limit",
    }


def test_a_picture_of_nothing_is_still_a_picture() -> None:
    assert ET.fromstring(bar_chart([MANY[4]], title="t")).tag == f"{SVG}svg"


def test_failed_ops_stay_in_the_table_with_their_reason() -> None:
    lines = table(MANY).splitlines()
    cells = {line.split(" | ")[0][2:]: line for line in lines[2:]}
    assert sorted(cells) == sorted(["slow", "even", "fast\\|&lt;b>", "wrong", "unmeasured"])
    assert cells["even"].endswith("| 2 | 2 of 2 | pass |  |")
    assert "| fail | geomean: measured 0.80" in cells["slow"]
    assert "| fail | correctness: 1 of 2 rows fail: test_op[size=8]: off by \\| 3 at x |" in cells["wrong"]
    assert "| infra | correctness: the source's rows were not collected; " in cells["unmeasured"]


def test_a_failed_gate_outweighs_an_open_one() -> None:
    assert [verdict(one) for one in MANY] == [
        Ruling.FAIL,
        Ruling.PASS,
        Ruling.PASS,
        Ruling.FAIL,
        Ruling.INFRA,
    ]

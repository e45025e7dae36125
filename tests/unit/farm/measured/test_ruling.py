"""All records of one op to three gates."""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.codec import decode, encode
from farm.gates import Basis, GateName, Ruling
from farm.measured.model import Measured
from farm.measured.reading import RecordsBroken, read_records
from farm.measured.records import Outcome, Phase
from farm.measured.ruling import rule
from tests.unit.farm.measured.builders import CONFIGS, KEYS, SETTINGS, honest, row


def lines(records: list[object]) -> str:
    return "".join(json.dumps({"record": type(r).__name__, **encode(r)}) + "\n" for r in records)


def test_an_honest_run_passes_all_three_gates() -> None:
    found = rule(honest(), SETTINGS)
    assert found.passed
    assert [(g.gate, g.ruling, g.basis) for g in found.gates] == [
        (name, Ruling.PASS, Basis.MEASURED) for name in GateName
    ]
    assert [g.summary for g in found.gates[:2]] == ["measured 2/2", "measured 2/2"]
    assert (found.rows_expected, found.rows_collected) == (2, 2)
    assert [line.key for line in found.rows] == list(KEYS)
    assert [line.config for line in found.configs] == list(CONFIGS)
    assert (found.gpu, found.toolchain, found.patch_sha256) == ("NVIDIA H200", {"tileiras": "13.5.37"}, "a" * 64)
    assert found.flags == ()


def test_records_survive_their_file_and_the_ruling_its_document() -> None:
    found = rule(read_records(lines(honest()).splitlines()), SETTINGS)
    assert found == rule(honest(), SETTINGS)
    assert decode(Measured, json.loads(json.dumps(encode(found)))) == found


def test_the_records_of_another_subject_change_nothing() -> None:
    other = [replace(record, subject="judge.other") for record in honest()]
    bad = row(KEYS[0], Phase.TARGET, Outcome.FAILED, subject="judge.other")
    assert rule([*other, *honest(), bad], SETTINGS) == rule(honest(), SETTINGS)
    assert not rule(other, SETTINGS).passed


def test_the_order_of_records_changes_no_ruling() -> None:
    records = honest()
    random.Random(3).shuffle(records)
    assert [g.ruling for g in rule(records, SETTINGS).gates] == [Ruling.PASS] * 3


def test_nothing_is_no_pass() -> None:
    assert [g.ruling for g in rule([], SETTINGS).gates] == [Ruling.INFRA] * 3


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_losing_records_never_makes_a_pass_of_more(data: st.DataObject) -> None:
    records = honest()
    bad = row(KEYS[0], Phase.TARGET, Outcome.FAILED)
    at = data.draw(st.integers(0, len(records)))
    kept = [r for r in [*records[:at], bad, *records[at:]] if r is bad or data.draw(st.booleans())]
    assert not rule(kept, SETTINGS).passed


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 1"),
        ("[]", "line 1: not a record"),
        ('{"record": "Verdict"}', "line 1: no record is called 'Verdict'"),
        ('{"record": "TimedCall"}', "line 1: .*missing"),
    ],
)
def test_a_broken_line_is_named(line: str, reason: str) -> None:
    with pytest.raises(RecordsBroken, match=reason):
        list(read_records([line]))

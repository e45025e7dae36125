"""What is known about a traced process that died."""

from pathlib import Path

from containers.box.trace.journal import given_up_candidate, given_up_reference, read_journal
from farm.analysis import RowStatus

COLLECTED = '{"collected": [{"key": "k1", "node": "n1"}, {"key": "k2", "node": "n2"}]}\n'


def test_the_row_started_last_is_known_and_a_torn_line_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"uncollected": "a.py: gone"}\n' + COLLECTED + '{"started": "n1"}\n{"started": "n2"}\n{"star')
    journal = read_journal(file)
    assert journal.collected == (("k1", "n1"), ("k2", "n2"))
    assert journal.started == "n2"
    assert journal.uncollected == ("a.py: gone",)


def test_without_a_journal_nothing_was_collected(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "rows.jsonl").collected is None


def test_rows_that_were_given_up_are_failed_with_their_reasons(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(COLLECTED)
    journal = read_journal(tmp_path / "rows.jsonl")
    reasons = {"n1": "why", "n2": "not run"}
    for rows in (given_up_reference(journal, reasons), given_up_candidate(journal, reasons)):
        assert [(row.key, row.status, row.reason, row.launches) for row in rows] == [
            ("k1", RowStatus.FAILED, "why", ()),
            ("k2", RowStatus.FAILED, "not run", ()),
        ]

"""rows.jsonl: what a traced process got to before it ended."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.analysis import CandidateRow, Row, RowStatus


@dataclass(frozen=True, kw_only=True)
class Journal:
    """A journal as far as it was written."""

    collected: tuple[tuple[str, str], ...] | None  #: key and node of each row; None: collection did not end
    started: str | None  #: node of the row that was started last
    uncollected: tuple[str, ...]  #: what could not be imported or was skipped as a whole, and why


def read_journal(path: Path) -> Journal:
    """The journal at `path`; an absent one is empty, a torn last line is ignored."""
    collected: tuple[tuple[str, str], ...] | None = None
    started, uncollected = None, []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            break
        if "collected" in entry:
            collected = tuple((row["key"], row["node"]) for row in entry["collected"])
        elif "started" in entry:
            started = entry["started"]
        else:
            uncollected.append(entry["uncollected"])
    return Journal(collected=collected, started=started, uncollected=tuple(uncollected))


def given_up_reference(journal: Journal, reasons: Mapping[str, str]) -> list[Row]:
    """All rows as failed ones, when the process died too often to trace any."""
    return [
        Row(key=key, node=node, status=RowStatus.FAILED, reason=reasons[node], launches=())
        for key, node in journal.collected or ()
    ]


def given_up_candidate(journal: Journal, reasons: Mapping[str, str]) -> list[CandidateRow]:
    """The same for the target backend."""
    return [
        CandidateRow(key=key, node=node, status=RowStatus.FAILED, reason=reasons[node], launches=())
        for key, node in journal.collected or ()
    ]

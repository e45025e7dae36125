"""The results folder: what is kept through kills, second tries and second runs."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box.gate.machine import Machine
from containers.box.gate.outcome import Outcome
from farm.codec import encode
from farm.errors import BundleRefused, UsageError
from farm.measured.records import Collected, Phase
from farm.results import RESULTS, Ended, MachineFacts, PartRun, merged, read_results

FACTS = MachineFacts(python="3.12.1", gpu="G", arch="sm_90", memory_bytes=1, driver="580", versions={"torch": "2"})
ROWS = "rows.jsonl.gz"


def outcome(folder: Path, *, bundle: str = "b" * 64, facts: MachineFacts = FACTS) -> Outcome:
    machine = Machine(facts=facts, gpu_uuid="GPU-1", problems=())
    return Outcome(folder, bundle=bundle, machine=machine, isolation={"network": "none"})


def part(subject: str, name: str, ended: Ended = Ended.DONE) -> PartRun:
    reason = None if ended is Ended.DONE else "killed"
    return PartRun(subject=subject, part=name, ended=ended, reason=reason, seconds=1.0, limit_s=2.0)


def record(subject: str, *keys: str) -> Collected:
    return Collected(subject=subject, phase=Phase.SOURCE, keys=keys, uncollected=(), process={})


def lines(*records: Collected) -> bytes:
    return b"".join(json.dumps({"record": "Collected", **encode(item)}).encode() + b"\n" for item in records)


def test_every_part_is_read_back_with_its_own_records(tmp_path: Path) -> None:
    out = outcome(tmp_path)
    out.add(part("a", "source"), ROWS, lines(record("a", "1")))
    out.add(part("b", "source"), ROWS, lines(record("b", "2"), record("b", "3")))
    out.add(part("b", "probes", Ended.LIMIT), "probes.jsonl.gz", b"")
    found = read_results(tmp_path)
    assert found.parts == {
        ("a", "source"): (record("a", "1"),),
        ("b", "source"): (record("b", "2"), record("b", "3")),
    }
    assert gzip.decompress((tmp_path / ROWS).read_bytes()).count(b"\n") == 3
    assert [run.gpu_uuid for run in found.results.parts] == ["GPU-1"] * 3


def test_a_second_try_of_a_part_replaces_the_first_and_leaves_the_others(tmp_path: Path) -> None:
    out = outcome(tmp_path)
    for subject in "abc":
        out.add(part(subject, "source", Ended.LIMIT), ROWS, lines(record(subject, "old")))
    assert not out.has("b", "source")
    out.add(part("b", "source"), ROWS, lines(record("b", "new", "newer")))
    assert out.has("b", "source")
    found = read_results(tmp_path)
    assert [found.parts[subject, "source"][0].keys for subject in "abc"] == [("old",), ("new", "newer"), ("old",)]
    assert gzip.decompress((tmp_path / ROWS).read_bytes()).count(b"\n") == 3


def test_a_try_that_was_not_begun_leaves_what_an_earlier_one_got(tmp_path: Path) -> None:
    out = outcome(tmp_path)
    out.add(part("a", "source", Ended.LIMIT), ROWS, lines(record("a", "1")))
    out.add(part("a", "source", Ended.NOT_RUN), ROWS, b"")
    out.add(part("a", "target", Ended.NOT_RUN), ROWS, b"")
    found = read_results(tmp_path)
    assert [(run.part, run.ended) for run in found.results.parts] == [
        ("source", Ended.LIMIT),
        ("target", Ended.NOT_RUN),
    ]
    assert found.parts["a", "source"] == (record("a", "1"),)


def test_a_run_that_was_killed_is_taken_up_without_what_nothing_vouches_for(tmp_path: Path) -> None:
    outcome(tmp_path).add(part("a", "source"), ROWS, lines(record("a", "1")))
    with (tmp_path / ROWS).open("ab") as file:
        file.write(gzip.compress(lines(record("a", "torn"))))
    again = outcome(tmp_path)
    assert again.has("a", "source")
    again.add(part("a", "target"), ROWS, lines(record("a", "2")))
    assert set(read_results(tmp_path).parts) == {("a", "source"), ("a", "target")}
    assert b"torn" not in gzip.decompress((tmp_path / ROWS).read_bytes())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bundle": "c" * 64}, "another bundle"),
        ({"facts": replace(FACTS, gpu="other")}, "another kind of machine"),
        ({"facts": replace(FACTS, versions={"torch": "3"})}, "another kind of machine"),
    ],
)
def test_results_of_something_else_are_left_alone(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    outcome(tmp_path).add(part("a", "source"), ROWS, lines(record("a", "1")))
    before = (tmp_path / RESULTS).read_bytes()
    with pytest.raises(UsageError, match=said):
        outcome(tmp_path, **changes)  # type: ignore[arg-type]
    assert (tmp_path / RESULTS).read_bytes() == before


def test_a_file_that_is_missing_or_says_more_than_its_digest_is_refused(tmp_path: Path) -> None:
    outcome(tmp_path).add(part("a", "source"), ROWS, lines(record("a", "1")))
    good = (tmp_path / ROWS).read_bytes()
    (tmp_path / ROWS).write_bytes(gzip.compress(lines(record("a", "2")), mtime=0))
    with pytest.raises(BundleRefused, match=r"rows\.jsonl\.gz was changed"):
        read_results(tmp_path)
    (tmp_path / ROWS).unlink()
    with pytest.raises(BundleRefused, match=r"rows\.jsonl\.gz cannot be read"):
        read_results(tmp_path)
    (tmp_path / ROWS).write_bytes(good)
    read_results(tmp_path)


def test_records_of_another_subject_do_not_hide_in_a_part(tmp_path: Path) -> None:
    outcome(tmp_path).add(part("a", "source"), ROWS, lines(record("b", "1")))
    with pytest.raises(BundleRefused, match="other records than it says"):
        read_results(tmp_path)


def test_of_several_runs_the_last_that_came_to_its_end_counts(tmp_path: Path) -> None:
    for number, ended in enumerate((Ended.DONE, Ended.DONE, Ended.LIMIT)):
        out = outcome(tmp_path / str(number))
        out.add(part("a", "source", ended), ROWS, lines(record("a", str(number))))
    runs = [read_results(tmp_path / str(number)) for number in range(3)]
    assert [item.keys for item in merged(runs) if isinstance(item, Collected)] == [("1",)]
    assert [item.keys for item in merged(runs[::-1]) if isinstance(item, Collected)] == [("1",)]

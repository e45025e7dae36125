"""The log of a running box is shown as far as it has come, and its folder is read as an enemy's."""

import os
from pathlib import Path

import pytest

from farm.job import Job, JobState
from tests.builders import job
from workers.livelogs import LOG_BYTES, LOGS, LiveLogs, Part
from workers.places import places


class Box:
    """A job with the folders that its boxes write to."""

    def __init__(self, state: Path, at: JobState = JobState.RUNNING) -> None:
        self.job: Job = job("relu", at)
        self.places = places(state, self.job)
        self.logs = self.places.out / "logs"
        self.logs.mkdir(parents=True)
        self.seen: dict[str, int] = {}
        self._live = LiveLogs(state)

    def read(self) -> tuple[Part, ...]:
        return self._live.read(self.job, self.seen)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_what_was_written_so_far_is_read_and_then_only_what_is_new(box: Box) -> None:
    (box.logs / "A-1.log").write_text("traced 3\nhalf a li")
    (part,) = box.read()
    assert (part.name, part.text) == ("A-1.log", "traced 3\n")
    box.seen[part.name] = part.end
    assert box.read() == ()
    with (box.logs / "A-1.log").open("a") as log:
        log.write("ne\n")
    assert [part.text for part in box.read()] == ["half a line\n"]


def test_a_gate_boxs_logs_have_the_names_of_their_artifacts(tmp_path: Path) -> None:
    box = Box(tmp_path, JobState.VERIFYING)
    (box.logs / "A-1.log").write_text("the pipeline's\n")
    assert box.read() == ()
    (box.places.gate_out / "logs").mkdir(parents=True)
    (box.places.gate_out / "logs" / "A-1.log").write_text("the gate's\n")
    assert [(part.name, part.text) for part in box.read()] == [("gate-A-1.log", "the gate's\n")]


@pytest.mark.parametrize("state", sorted(set(JobState) - {JobState.RUNNING, JobState.VERIFYING}))
def test_no_other_state_has_a_running_box(tmp_path: Path, state: JobState) -> None:
    box = Box(tmp_path, state)
    (box.logs / "A-1.log").write_text("old\n")
    assert box.read() == ()


def test_links_pipes_and_odd_names_are_not_read(box: Box, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (box.logs / "link.log").symlink_to(tmp_path / "secret")
    os.mkfifo(box.logs / "pipe.log")
    (box.logs / "folder.log").mkdir()
    (box.logs / ".hidden.log").write_text("x\n")
    (box.logs / "a\nb.log").write_text("x\n")
    assert box.read() == ()


@pytest.mark.parametrize("what", ["out", "logs"])
def test_a_folder_that_became_a_link_is_not_followed(box: Box, tmp_path: Path, what: str) -> None:
    (tmp_path / "elsewhere" / "logs").mkdir(parents=True)
    (tmp_path / "elsewhere" / "logs" / "A-1.log").write_text("secret\n")
    box.logs.rmdir()
    if what == "out":
        box.places.out.rmdir()
        box.places.out.symlink_to(tmp_path / "elsewhere")
    else:
        box.logs.symlink_to(tmp_path / "elsewhere" / "logs")
    assert box.read() == ()


def test_much_is_cut_to_its_end_and_many_to_the_first(box: Box) -> None:
    (box.logs / "A-1.log").write_text("x\n" * LOG_BYTES + "the end\n")
    for number in range(LOGS + 5):
        (box.logs / f"B-{number:02}.log").write_text("b\n")
    parts = box.read()
    assert len(parts) == LOGS
    assert len(parts[0].text) <= LOG_BYTES
    assert parts[0].text.endswith("the end\n")
    assert parts[0].start > 0


def test_nothing_in_a_log_steers_a_terminal(box: Box) -> None:
    (box.logs / "A-1.log").write_bytes(b"\x1b]0;title\x07 \x9b2J caf\xc3\xa9 \xff\ttab\n")
    (part,) = box.read()
    assert not {character for character in part.text if ord(character) < 32} - {"\n", "\t"}
    assert "café" in part.text
    assert part.end == len(b"\x1b]0;title\x07 \x9b2J caf\xc3\xa9 \xff\ttab\n")


def test_a_job_without_folders_has_no_log(tmp_path: Path) -> None:
    assert LiveLogs(tmp_path / "none").read(job("relu", JobState.RUNNING), {}) == ()

import pytest

from containers.classify import BROKEN, BoxExit, classify, fault_of
from containers.engine import BoxStatus
from farm.fault import Fault


def ended(code: int | None, *, oom: bool = False, running: bool = False) -> BoxStatus:
    return BoxStatus(name="b", running=running, exit_code=code, oom_killed=oom, started_at=1.0, labels={})


@pytest.mark.parametrize(
    ("status", "log", "expected"),
    [
        (None, "", BoxExit.GONE),
        (ended(None, running=True), "No space left on device", BoxExit.RUNNING),
        (ended(0), "No space left on device", BoxExit.FINISHED),
        (ended(0, oom=True), "Killed", BoxExit.FINISHED),
        (ended(137, oom=True), "", BoxExit.OOM),
        (ended(137), "", BoxExit.KILLED),
        (ended(139), "", BoxExit.SIGNALLED),
        (ended(127), "", BoxExit.NOT_STARTED),
        (ended(1), "OSError: [Errno 28] No space left on device", BoxExit.NO_SPACE),
        (ended(1), "RuntimeError: can't start new thread", BoxExit.PROCESSES),
        (ended(101), "fatal error: 'stddef.h' file not found", BoxExit.TOOLCHAIN),
        (ended(1), "error: linker `cc` not found", BoxExit.TOOLCHAIN),
        (
            ended(1),
            "/cuda/bin/tileiras: error while loading shared libraries: libz.so.1: cannot",
            BoxExit.TOOLCHAIN,
        ),
        (ended(1), "No module named 'torch'", BoxExit.TOOLCHAIN),
        (ended(1), "anything", BoxExit.ERROR),
    ],
)
def test_an_end_is_named(status: BoxStatus | None, log: str, expected: BoxExit) -> None:
    assert classify(status, log).exit is expected


@pytest.mark.parametrize(
    "log",
    [
        "MemoryError",
        "OSError: [Errno 12] Cannot allocate memory",
        "the candidate's docstring says: out of memory, no space, killed",
        "ModuleNotFoundError: No module named 'candidate_helper'",
    ],
)
def test_words_that_prove_nothing_are_not_guessed_from(log: str) -> None:
    assert classify(ended(1), log).exit is BoxExit.ERROR


def test_every_broken_end_says_what_to_do_and_is_charged() -> None:
    for status, log in (
        (None, ""),
        (ended(137, oom=True), ""),
        (ended(9), ""),
        (ended(126), ""),
        (ended(134), ""),
    ):
        ending = classify(status, log)
        assert ending.exit in BROKEN
        assert ending.next_step
        assert fault_of(ending.exit) in (Fault.ENV, Fault.INFRA)


def test_no_end_of_a_box_is_charged_to_the_candidate() -> None:
    charged = {fault_of(end) for end in BoxExit if end is not BoxExit.RUNNING}
    assert charged == {Fault.ENV, Fault.INFRA}

import os
import threading
from pathlib import Path

import pytest

from containers.toolchain.parts import folder_bytes, key_of, locked, point, publish, step, sweep
from farm.errors import ToolchainMissing


def test_parts_are_made_once(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        publish(tmp_path / "parts" / "a", lambda folder: made.append((folder / "f").write_text("x")))
    assert len(made) == 1
    assert (tmp_path / "parts" / "a" / "f").read_text() == "x"


def test_an_interrupted_make_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "a", interrupted)
    assert list(tmp_path.iterdir()) == []
    publish(tmp_path / "a", lambda folder: None)
    assert (tmp_path / "a").is_dir()


def test_what_a_killed_maker_left_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".a-1234" / "deep").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_second_maker_waits_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    inside = threading.Event()

    def second() -> None:
        with locked(tmp_path, said.append):
            inside.set()

    with locked(tmp_path, said.append):
        other = threading.Thread(target=second)
        other.start()
        while not said:
            pass
        assert not inside.is_set()
    other.join()
    assert inside.is_set()
    assert len(said) == 1


def test_a_link_is_moved_over_an_older_one(tmp_path: Path) -> None:
    for target in ("one", "two"):
        point(tmp_path / "current", target)
    assert os.readlink(tmp_path / "current") == "two"
    assert len(list(tmp_path.iterdir())) == 1


def test_keys_tell_where_one_part_ends() -> None:
    assert key_of([b"ab", b"c"]) != key_of([b"a", b"bc"])


def test_build_output_is_no_source_and_the_execute_bit_is(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("x")
    before = key_of(folder_bytes(tmp_path))
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "out").touch()
    assert key_of(folder_bytes(tmp_path)) == before
    (tmp_path / "run.sh").chmod(0o755)
    assert key_of(folder_bytes(tmp_path)) != before


def test_a_failing_step_tells_its_own_last_words_and_the_advice(tmp_path: Path) -> None:
    with pytest.raises(ToolchainMissing, match=r"(?s)doing it: sh exited 3; do that.*its words"):
        step(("sh", "-c", "echo its words >&2; exit 3"), env={}, cwd=tmp_path, doing="doing it", advice="do that")


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolchainMissing, match="no-such-tool is not there; install it"):
        step(("no-such-tool",), env={"PATH": "/nowhere"}, cwd=tmp_path, doing="x", advice="install it")

"""One look at a box after the other, on an engine in memory."""

import os
import time
from pathlib import Path

import pytest

from containers.engine.fake_engine import FakeEngine, FakeExit
from containers.spec import BoxFolders, BoxSettings
from farm.errors import EngineUnavailable
from tests.builders import order, toolchain
from workers.boxes import HEARTBEAT_LIMIT_S, MOST_STARTS, Boxes, Look, Sight


class Bench:
    """Boxes that were started `age_s` ago, so that a look at a running one does not linger."""

    def __init__(self, tmp_path: Path, most: int = 1) -> None:
        self.age_s = 60.0
        self.engine = FakeEngine(clock=lambda: time.time() - self.age_s)
        self.root = tmp_path
        for name in ("work", "out"):
            (tmp_path / name).mkdir()
        self.boxes = Boxes(
            engine=self.engine,
            settings=BoxSettings(farm="f", toolchain=toolchain(tmp_path / "tc")),
            lock=tmp_path / "lock",
            most=most,
        )

    def look(self, job: str = "r-1.relu", limit_s: float = 1000.0) -> Look:
        folders = BoxFolders(
            workspace=self.root / "work",
            out=self.root / "out",
            order=self.root / f"{job}.json",
            lib=self.root,
            recipe=self.root,
        )
        return self.boxes.look(order(job=job), folders, result="result.json", limit_s=limit_s)

    def heartbeat(self, age_s: float) -> None:
        path = self.root / "out" / "heartbeat"
        path.touch()
        os.utime(path, (time.time() - age_s,) * 2)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_box_is_started_once_and_then_watched(bench: Bench) -> None:
    assert [bench.look().sight for _ in range(3)] == [Sight.RUNNING] * 3
    assert len(bench.engine.started) == 1


def test_no_more_run_than_may_and_a_free_place_is_taken(bench: Bench) -> None:
    first = bench.look("r-1.a")
    assert bench.look("r-1.b").sight is Sight.FULL
    bench.engine.finish(first.name, FakeExit(exit_code=1))
    assert bench.look("r-1.b").sight is Sight.RUNNING


def test_boxes_of_other_farms_take_no_place(bench: Bench, tmp_path: Path) -> None:
    bench.look("r-1.a")
    spec = bench.engine.spec(bench.engine.started[0])
    bench.engine.remove(spec.name, grace_s=0)
    bench.engine.ensure(type(spec)(**{**vars(spec), "name": "other", "labels": {**spec.labels, "farm": "g"}}))
    assert bench.look("r-1.b").sight is Sight.RUNNING


def test_a_box_with_a_result_is_done_whatever_else_is_true_of_it(bench: Bench) -> None:
    name = bench.look().name
    (bench.root / "out" / "result.json").symlink_to("nowhere")
    bench.heartbeat(age_s=10_000)
    bench.engine.finish(name, FakeExit(exit_code=1, oom_killed=True, log="words"))
    look = bench.look(limit_s=0.0)
    assert (look.sight, look.log) == (Sight.DONE, "words")


def test_a_box_that_goes_on_after_its_result_is_ended_before_its_work_is_read(bench: Bench) -> None:
    bench.look()
    (bench.root / "out" / "result.json").write_text("{}")
    assert bench.look().sight is Sight.DONE
    assert bench.engine.list({}) == ()
    assert bench.look().sight is Sight.DONE
    assert len(bench.engine.started) == 1


def test_a_box_hangs_when_its_limit_is_over_or_its_heart_stands_still(bench: Bench) -> None:
    bench.look()
    bench.heartbeat(age_s=0)
    slow = bench.look(limit_s=59.0)
    assert slow.sight is Sight.HANGS
    assert slow.ending is not None
    assert slow.ending.summary == "no result after 60 s"
    bench.age_s = 10 * HEARTBEAT_LIMIT_S
    bench.look("r-1.b", limit_s=10_000)
    bench.heartbeat(age_s=HEARTBEAT_LIMIT_S + 30)
    still = bench.look("r-1.b", limit_s=10_000)
    assert still.sight is Sight.HANGS
    assert still.ending is not None
    assert "no sign of life for 150 s" in still.ending.summary
    assert bench.engine.list({}) == ()


def test_a_box_started_again_is_not_measured_by_the_heartbeat_of_the_one_before(bench: Bench) -> None:
    bench.heartbeat(age_s=100 * HEARTBEAT_LIMIT_S)
    assert bench.look(limit_s=10_000).sight is Sight.RUNNING


def test_a_box_that_never_had_a_heartbeat_hangs_too(bench: Bench) -> None:
    bench.age_s = HEARTBEAT_LIMIT_S + 60
    assert bench.look().sight is Sight.HANGS


@pytest.mark.parametrize("vanishes", [False, True])
def test_a_box_that_is_ended_from_outside_starts_again_a_few_times(bench: Bench, vanishes: bool) -> None:
    sights = []
    for _ in range(20):
        look = bench.look()
        sights.append(look.sight)
        if look.sight is Sight.BROKEN:
            break
        if look.name in {box.name for box in bench.engine.list({}) if box.running}:
            if vanishes:
                bench.engine.remove(look.name, grace_s=0)
            else:
                bench.engine.finish(look.name, FakeExit(exit_code=137))
    assert sights[-1] is Sight.BROKEN
    assert len(bench.engine.started) == MOST_STARTS


def test_a_box_that_fails_by_itself_is_not_started_again(bench: Bench) -> None:
    name = bench.look().name
    bench.engine.finish(name, FakeExit(exit_code=3, log="Traceback"))
    look = bench.look()
    assert (look.sight, look.log) == (Sight.BROKEN, "Traceback")
    assert len(bench.engine.started) == 1


def test_a_lost_answer_of_the_engine_starts_no_second_box(bench: Bench) -> None:
    bench.engine.lose_answers = 1
    with pytest.raises(EngineUnavailable):
        bench.look()
    assert bench.look().sight is Sight.RUNNING
    assert len(bench.engine.started) == 1


def test_an_engine_that_does_not_answer_is_no_failure_of_the_box(bench: Bench) -> None:
    bench.look()
    bench.engine.down = True
    with pytest.raises(EngineUnavailable):
        bench.look()
    bench.engine.down = False
    assert bench.look().sight is Sight.RUNNING


def test_removing_gives_the_last_words_and_may_be_repeated(bench: Bench) -> None:
    name = bench.look().name
    bench.engine.finish(name, FakeExit(log="words"))
    assert bench.boxes.remove(order()) == "words"
    assert bench.boxes.remove(order()) == ""


def test_a_box_of_the_same_name_starts_when_the_removal_of_the_last_one_has_ended(bench: Bench) -> None:
    name = bench.look().name
    result = bench.root / "out" / "result.json"
    result.write_text("{}")
    bench.engine.finish(name, FakeExit())
    assert bench.look().sight is Sight.DONE
    result.unlink()
    assert bench.look().sight is Sight.RUNNING
    assert bench.engine.started == [name, name]

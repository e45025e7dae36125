import pytest

from containers.engine import BoxSpec
from containers.engine.fake_engine import FakeEngine, FakeExit
from farm.errors import EngineUnavailable


def spec(name: str = "box", **labels: str) -> BoxSpec:
    return BoxSpec(name=name, argv=("true",), env={}, mounts=(), labels={"farm": "f", **labels}, workdir="/work")


def test_a_box_starts_once_however_often_it_is_ensured() -> None:
    engine = FakeEngine()
    engine.ensure(spec())
    status = engine.ensure(spec())
    assert status.running
    assert engine.started == ["box"]


def test_an_ended_box_is_adopted_with_its_exit_code() -> None:
    engine = FakeEngine(lambda _: FakeExit(exit_code=3, log="one\ntwo\n"))
    engine.ensure(spec())
    assert engine.ensure(spec()).exit_code == 3
    assert engine.logs("box", tail=1) == "two\n"


def test_a_lost_answer_leaves_a_box_that_the_next_call_adopts() -> None:
    engine = FakeEngine()
    engine.lose_answers = 1
    with pytest.raises(EngineUnavailable):
        engine.ensure(spec())
    engine.ensure(spec())
    assert engine.started == ["box"]


def test_a_name_in_use_with_other_labels_is_not_adopted() -> None:
    engine = FakeEngine()
    engine.ensure(spec(job="one"))
    with pytest.raises(EngineUnavailable, match="other labels"):
        engine.ensure(spec(job="two"))


def test_boxes_are_listed_by_all_given_labels() -> None:
    engine = FakeEngine()
    engine.ensure(spec("b", job="1"))
    engine.ensure(spec("a", job="1"))
    engine.ensure(spec("c", job="2"))
    assert [box.name for box in engine.list({"farm": "f", "job": "1"})] == ["a", "b"]


def test_removing_twice_is_as_good_as_once() -> None:
    engine = FakeEngine()
    engine.ensure(spec())
    engine.remove("box", grace_s=1)
    engine.remove("box", grace_s=1)
    assert engine.inspect("box") is None


def test_an_engine_that_is_down_answers_nothing() -> None:
    engine = FakeEngine()
    engine.ensure(spec())
    engine.down = True
    for call in (
        lambda: engine.ensure(spec()),
        lambda: engine.inspect("box"),
        lambda: engine.remove("box", grace_s=0),
        lambda: engine.list({}),
        lambda: engine.logs("box", tail=1),
    ):
        with pytest.raises(EngineUnavailable):
            call()

import pytest

from containers.engine import BoxSpec
from containers.engine.fake_engine import FakeEngine
from containers.reap import sweep
from farm.errors import EngineUnavailable


def engine_with(*names: str, farm: str = "f") -> FakeEngine:
    engine = FakeEngine()
    for name in names:
        engine.ensure(BoxSpec(name=name, argv=("x",), env={}, mounts=(), labels={"farm": farm}, workdir="/"))
    return engine


def test_an_orphan_goes_at_its_second_sweep() -> None:
    engine = engine_with("wanted", "orphan")
    first = sweep(engine, farm="f", wanted={"wanted"}, suspects=frozenset())
    assert first.removed == ()
    second = sweep(engine, farm="f", wanted={"wanted"}, suspects=first.suspects)
    assert second.removed == ("orphan",)
    assert [box.name for box in engine.list({"farm": "f"})] == ["wanted"]


def test_a_box_that_is_wanted_by_the_second_sweep_stays() -> None:
    engine = engine_with("late")
    first = sweep(engine, farm="f", wanted=frozenset(), suspects=frozenset())
    second = sweep(engine, farm="f", wanted={"late"}, suspects=first.suspects)
    assert second.removed == ()
    assert second.suspects == frozenset()


def test_boxes_of_another_farm_are_left_alone() -> None:
    engine = engine_with("theirs", farm="other")
    suspects = sweep(engine, farm="f", wanted=frozenset(), suspects={"theirs"})
    assert suspects == ((), frozenset())
    assert engine.inspect("theirs") is not None


def test_an_engine_that_is_down_is_said_so() -> None:
    engine = engine_with("orphan")
    engine.down = True
    with pytest.raises(EngineUnavailable):
        sweep(engine, farm="f", wanted=frozenset(), suspects=frozenset())

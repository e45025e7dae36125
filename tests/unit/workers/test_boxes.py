import json
from pathlib import Path

import pytest

from containers.engine import BoxSpec
from containers.engine.fake_engine import FakeEngine, FakeExit, FakeProgram
from containers.spec import BoxFolders, BoxSettings
from containers.toolchain import Record, Toolchain
from farm.codec import encode
from farm.orders import BoxOrder, Purpose
from farm.pipeline.stage import ExecutorKind, Stage
from workers.boxes import Boxes, Look, Sight

RESULT = "result.json"


def order() -> BoxOrder:
    return BoxOrder(
        purpose=Purpose.PIPELINE,
        run="r",
        job="r.a",
        attempt=1,
        op="a",
        recipe="plain-copy",
        conversion="plain-copy",
        source="plain",
        target="copied",
        gpu="sm_90",
        executors=dict.fromkeys(Stage, ExecutorKind.PROGRAM),
        caps=dict.fromkeys(Stage, 1),
        stage_limit_s=60,
        previous_trace=None,
    )


class Place:
    """The boxes of a farm on a fake engine, and the folders of one order."""

    def __init__(self, folder: Path, program: FakeProgram) -> None:
        self.engine = FakeEngine(program, clock=lambda: 0.0)
        record = Record(digest="d", python_key="p", versions={})
        toolchain = folder / "toolchain"
        for part in ("venv/bin", "cuda", "rust", "cargo-home", "warm"):
            (toolchain / part).mkdir(parents=True)
        settings = BoxSettings(farm="f", toolchain=Toolchain(root=toolchain, record=record))
        self.boxes = Boxes(engine=self.engine, settings=settings, lock=folder / "lock", most=1)
        self.out = folder / "out"
        self.out.mkdir()
        self.order = folder / "order.json"
        self.order.write_text(json.dumps(encode(order())))
        self._folder = folder

    def look(self) -> Look:
        folders = BoxFolders(
            workspace=self._folder, out=self.out, order=self.order, lib=self._folder, recipe=self._folder
        )
        return self.boxes.look(order(), folders, result=RESULT, limit_s=float("inf"))


def out_of(spec: BoxSpec) -> Path:
    return next(mount.source for mount in spec.mounts if mount.target == "/out")


def writes(spec: BoxSpec) -> FakeExit:
    (out_of(spec) / RESULT).write_text("{}")
    return FakeExit(log="said\n")


def writes_and_stays(spec: BoxSpec) -> None:
    (out_of(spec) / RESULT).write_text("{}")


def test_a_box_with_a_result_is_done_and_is_removed(tmp_path: Path) -> None:
    place = Place(tmp_path, writes)
    look = place.look()
    assert (look.sight, look.log) == (Sight.DONE, "said\n")
    again = place.look()
    assert again.sight is Sight.DONE
    assert place.engine.list({"farm": "f"}) == ()
    assert len(place.engine.started) == 1


def test_nothing_runs_any_more_when_a_look_says_done(tmp_path: Path) -> None:
    place = Place(tmp_path, writes_and_stays)
    assert place.look().sight is Sight.DONE
    assert place.engine.list({"farm": "f"}) == ()


def test_a_box_of_the_same_name_starts_anew_only_when_the_last_one_is_gone(tmp_path: Path) -> None:
    place = Place(tmp_path, writes)
    place.look()
    (place.out / RESULT).unlink()
    assert place.look().sight is Sight.DONE
    assert len(place.engine.started) == 2


def test_a_box_waits_for_room(tmp_path: Path) -> None:
    place = Place(tmp_path, lambda spec: None if spec.name == "other" else writes(spec))
    place.engine.ensure(BoxSpec(name="other", argv=(), env={}, mounts=(), labels={"farm": "f"}, workdir="/"))
    assert place.look().sight is Sight.FULL
    place.engine.finish("other", FakeExit())
    assert place.look().sight is Sight.DONE


@pytest.mark.parametrize("exit_code", [1, 137])
def test_a_box_that_ends_without_a_result_is_not_waited_for(tmp_path: Path, exit_code: int) -> None:
    place = Place(tmp_path, lambda _: FakeExit(exit_code=exit_code))
    look = place.look()
    for _ in range(3):
        if look.sight is Sight.RUNNING:
            look = place.look()
    assert look.sight is Sight.BROKEN
    assert place.engine.list({"farm": "f"}) == ()

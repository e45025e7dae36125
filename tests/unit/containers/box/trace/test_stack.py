"""The innermost frame of the repo says who is at work."""

from collections.abc import Callable
from pathlib import Path

import pytest

from containers.box.trace.stack import Whereabouts
from farm.recipes.cutile_rs.storages import Maker


def function_in(file: Path, body: str) -> Callable[..., Maker]:
    scope: dict[str, Callable[..., Maker]] = {}
    exec(compile(f"def run(call):\n    return {body}", str(file), "exec"), scope)
    return scope["run"]


@pytest.mark.parametrize(
    ("frames", "backward", "maker"),
    [
        (["tests/ops/test_a.py"], False, Maker.TEST),
        (["tests/ops/test_a.py", "src/pkg/op.py"], False, Maker.OP),
        (["tests/ops/test_a.py", "src/pkg/op.py", "tests/common.py"], False, Maker.TEST),
        (["tests/common.py", "/usr/lib/other.py"], False, Maker.TEST),
        (["tests/common.py"], True, Maker.ENGINE),
        (["tests/common.py", "src/pkg/op.py"], True, Maker.OP),
    ],
)
def test_who_is_at_work(tmp_path: Path, frames: list[str], backward: bool, maker: Maker) -> None:
    where = Whereabouts(tmp_path, ("tests/ops/test_a.py",), lambda: backward)
    call: Callable[[], Maker] = where.maker
    for file in reversed(frames):
        inner, outer = call, function_in(tmp_path / file, "call()")
        call = lambda outer=outer, inner=inner: outer(inner)  # noqa: E731 # a chain of frames
    assert call() is maker

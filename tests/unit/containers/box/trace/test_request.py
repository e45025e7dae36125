"""A request is checked before anything runs."""

import json
from pathlib import Path

import pytest

from containers.box.trace.request import Mode, read_request
from farm.codec import CodecError

REQUEST = {
    "repo": "repo",
    "tests": ["tests/ops/test_a.py"],
    "backend": "cutile",
    "mode": "reference",
    "gpu": "sm_90",
    "out": "out",
    "toolchain": "/opt/toolchain",
}


def written(folder: Path, **changes: object) -> Path:
    file = folder / "request.json"
    file.write_text(json.dumps(REQUEST | changes))
    return file


def test_paths_become_absolute_since_the_child_works_in_the_repo(tmp_path: Path) -> None:
    request = read_request(written(tmp_path))
    assert request.mode is Mode.REFERENCE
    assert Path(request.repo) == Path.cwd() / "repo"
    assert Path(request.out) == Path.cwd() / "out"
    assert request.library is None


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"gpu": "sm_75"}, "$.gpu"),
        ({"mode": "both"}, "$.mode"),
        ({"tests": "a"}, "$.tests"),
        ({"more": 1}, "more"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, changes: dict[str, object], place: str) -> None:
    with pytest.raises(CodecError) as caught:
        read_request(written(tmp_path, **changes))
    assert place in str(caught.value)

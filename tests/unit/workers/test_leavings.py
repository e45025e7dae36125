"""What a box left is read as an enemy's."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.codec import encode
from farm.errors import PatchRefused
from farm.fault import Fault
from farm.orders import BoxResult
from farm.store import MemoryStore, get_tree
from workers.boxes import Look, Sight
from workers.leavings import keep, read_record

DONE = Look(sight=Sight.DONE, name="b", log="last words")
RESULT = BoxResult(complete=True, records=(), diagnosis=None)
TEXT = json.dumps(encode(RESULT))


def read(out: Path) -> BoxResult:
    store = MemoryStore()
    return read_record(store, keep(store, out, DONE), "result.json", BoxResult)


def test_a_result_and_everything_beside_it_is_kept(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "result.json").write_text(TEXT)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "A-1.log").write_text("a")
    (tmp_path / "ir").mkdir()
    (tmp_path / "ir" / "x.mlir").write_text("m")
    kept = keep(store, tmp_path, DONE, prefix="gate-")
    assert sorted(kept) == ["gate-A-1.log", "gate-box.log", "gate-out", "result.json"]
    assert get_tree(store, kept["gate-out"])["ir/x.mlir"].data == b"m"
    assert read_record(store, kept, "result.json", BoxResult) == RESULT


def _link_inside(out: Path) -> None:
    (out / "other.json").write_text(TEXT)
    (out / "result.json").symlink_to("other.json")


def _link_outside(out: Path) -> None:
    (out.parent / "other.json").write_text(TEXT)
    (out / "result.json").symlink_to("../other.json")


def _hidden_pipe(out: Path) -> None:
    (out / "result.json").write_text(TEXT)
    (out / "logs").mkdir()
    os.mkfifo(out / "logs" / "A-1.log")


@pytest.mark.parametrize(
    "leave",
    [
        _link_inside,
        _link_outside,
        _hidden_pipe,
        lambda out: os.mkfifo(out / "result.json"),
        lambda out: (out / "result.json").mkdir(),
        lambda out: (out / "result.json").write_bytes(b""),
        lambda out: (out / "result.json").write_bytes(b"\xff\x00{"),
        lambda out: (out / "result.json").write_text("[" * 200_000),
        lambda out: (out / "result.json").write_text('{"complete": true}'),
        lambda out: (out / "result.json").write_text(TEXT.replace("true", "1")),
        lambda out: (out / "result.json").write_text(TEXT.replace("{", '{"more": 1, ', 1)),
    ],
)
def test_a_result_that_no_box_of_ours_writes_is_refused(tmp_path: Path, leave: Callable[[Path], None]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    leave(out)
    with pytest.raises(PatchRefused) as refusal:
        read(out)
    assert refusal.value.fault is Fault.INTEGRITY
    assert "result.json" in str(refusal.value) or "A-1.log" in str(refusal.value)

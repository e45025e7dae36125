"""What a box left: artifacts to keep, the record that ends its work, what the ledger is told of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from containers.box.files import parse_json
from containers.classify import fault_of
from farm.capture import read_tree
from farm.codec import CodecError
from farm.errors import PatchRefused
from farm.events import BoxEnded, Event, StageEnded
from farm.fault import Fault
from farm.orders import LIBRARY, BoxResult
from farm.report.evidence import GATES, RESULT
from farm.store import ArtifactStore, put_tree
from farm.tree import Mode
from workers.boxes import Look, Sight
from workers.spine import Failed, Notes

T = TypeVar("T")


def keep(store: ArtifactStore, out: Path, look: Look, prefix: str = "") -> dict[str, str]:
    """Everything a box left in its artifact folder, read as an enemy's: name to digest.

    Raises PatchRefused for what no box of ours leaves there: links that lead out, pipes, devices.
    """
    tree = read_tree(out)
    artifacts = {f"{prefix}out": put_tree(store, tree)}
    for path, entry in tree.items():
        if entry.mode is Mode.LINK:
            continue
        if path in (RESULT, GATES, LIBRARY):
            artifacts[path] = store.put(entry.data)
        elif path.startswith("logs/"):
            artifacts[prefix + path.removeprefix("logs/")] = store.put(entry.data)
    if look.log:
        artifacts[f"{prefix}box.log"] = store.put(look.log.encode())
    return artifacts


def read_record(store: ArtifactStore, artifacts: Mapping[str, str], name: str, kind: type[T]) -> T:
    """The record that ends a box's work. Raises PatchRefused when it is none: then the box is not believed."""
    if name not in artifacts:
        raise PatchRefused(f"{name} is no plain file: something in the box put it there; read the box's logs")
    try:
        return parse_json(store.get(artifacts[name]), kind)
    except CodecError as error:
        raise PatchRefused(f"{name} is not what a box writes ({error}); read the box's logs") from error


def broken(look: Look, artifacts: Mapping[str, str]) -> Failed:
    """The failure that a box without a result amounts to."""
    assert look.ending is not None
    fault = Fault.HANG if look.sight is Sight.HANGS else fault_of(look.ending.exit)
    summary = f"{look.ending.summary}; {look.ending.next_step}"
    return Failed(fault=fault, summary=summary, notes=Notes(artifacts=artifacts, events=(ended(look),)))


def ended(look: Look) -> Event:
    """That the box ended, and how."""
    status = look.status
    return BoxEnded(
        name=look.name,
        exit_code=None if status is None else status.exit_code,
        oom_killed=status is not None and status.oom_killed,
    )


def stages(box: str, result: BoxResult) -> tuple[Event, ...]:
    """What the pipeline's stages said."""
    return tuple(
        StageEnded(
            box=box,
            stage=record.stage,
            visit=record.visit,
            executor=record.executor,
            verdict=record.reply.verdict,
            owner=record.reply.owner,
            seconds=record.seconds,
            summary=record.reply.summary,
            malformed=record.malformed,
            contradiction=record.contradiction,
            calls=record.calls,
            tokens=record.tokens,
        )
        for record in result.records
    )

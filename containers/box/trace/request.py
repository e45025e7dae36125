"""What the trace program is asked to do."""

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from containers.box.trace.gpus import GPUS
from farm.codec import CodecError, decode


class Mode(StrEnum):
    """Whose launches are recorded."""

    REFERENCE = "reference"  #: the source backend's, as `cuda.tile.launch` received them
    CANDIDATE = "candidate"  #: the target backend's, as the stand-in driver received them


@dataclass(frozen=True, kw_only=True)
class TraceRequest:
    """One call of the trace program."""

    repo: str  #: root of the target repo
    tests: tuple[str, ...]  #: test files, paths in the repo
    backend: str  #: rows of this backend are run
    mode: Mode
    gpu: str  #: e.g. `sm_90`
    out: str  #: artifact folder
    toolchain: str  #: root of the toolchain
    library: str | None = None  #: the candidate's shared library, when the repo does not build it itself
    timeout_s: float = 900.0  #: wall clock of the whole trace


def read_request(path: Path) -> TraceRequest:
    """The request in a JSON file, its paths made absolute. Raises CodecError naming the place of a mistake."""
    asked = decode(TraceRequest, json.loads(path.read_text()))
    if asked.gpu not in GPUS:
        raise CodecError(f"$.gpu: expected one of {', '.join(GPUS)}, got {asked.gpu!r}")
    return replace(
        asked,
        repo=str(Path(asked.repo).resolve()),
        out=str(Path(asked.out).resolve()),
        toolchain=str(Path(asked.toolchain).absolute()),
        library=None if asked.library is None else str(Path(asked.library).resolve()),
    )

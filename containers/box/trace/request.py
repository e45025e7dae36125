"""What the trace program is asked to do."""

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from farm.codec import decode


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
    """The request in a JSON file. Raises CodecError naming the place when it is malformed."""
    return decode(TraceRequest, json.loads(path.read_text()))

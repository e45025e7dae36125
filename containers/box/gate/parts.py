"""The parts of the gates: which there are, in which order they run, and the program that runs one.

A part runs in a process of its own, `python -m containers.box.gate.parts REQUEST`: one that dies takes no other
along, and what isolates it holds for the candidate's processes that it starts.
"""

import ctypes
import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from containers.box.files import read_json
from containers.box.gate.subject import Sink
from containers.box.gate.unpack import subject
from farm.bundle import read_bundle
from farm.measured.records import Phase

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


class Group(StrEnum):
    """What `--only` names."""

    ROWS = "rows"  #: the repository's own rows, of source and target, with a stub and with null kernels
    PROBES = "probes"  #: inputs that the repository does not test
    TIMING = "timing"  #: device times, one subject at a time


#: Parts in the order in which a subject's run, each with its group.
PARTS: dict[str, Group] = {
    "source": Group.ROWS,
    "target": Group.ROWS,
    "stub": Group.ROWS,
    "hollow": Group.ROWS,
    "probes": Group.PROBES,
    "null": Group.ROWS,
    "timing": Group.TIMING,
}

#: Parts that need a GPU, and not alone. A lane's run one after the other, lanes side by side.
LANES = (("source", "null"), ("target", "stub", "hollow", "probes"))

#: File of a group's records, among the results.
FILES = {group: f"{group.value}.jsonl.gz" for group in Group}


@dataclass(frozen=True, kw_only=True)
class PartRequest:
    """request.json of a part's process."""

    bundle: str  #: folder of the bundle
    work: str  #: scratch folder with the unpacked subjects
    subject: str
    part: str
    limit_s: float
    workers: int  #: rows or probes at a time
    configs: int | None  #: most performance rows to time; None: all
    out: str  #: file for the records
    uid: int | None = None  #: whom to become before anything of the candidate runs; None: stay


def main(request: Path) -> None:
    """Run one part; its records are on disk one by one, so that a kill loses none before it."""
    order = read_json(request, PartRequest)
    bundle = read_bundle(Path(order.bundle))
    item = next(item for item in bundle.subjects if item.id == order.subject)
    judged = subject(item, Path(order.work))
    sink = Sink(Path(order.out))
    become(order.uid)
    group = PARTS[order.part]
    if group is Group.TIMING:
        from containers.box.gate import timing

        timing.run(judged, limit_s=order.limit_s, sink=sink, settings=timing.Settings(rows=order.configs))
    elif group is Group.PROBES:
        from containers.box.gate import probes

        probes.run(judged, limit_s=order.limit_s, sink=sink, jobs=order.workers)
    else:
        from containers.box.gate import rows

        side = "target" if order.part in ("target", "stub", "hollow") else "source"
        rows.run(
            judged,
            Phase(order.part),
            limit_s=order.limit_s,
            sink=sink,
            jobs=order.workers,
            home=Path(order.work) / "homes" / f"{order.subject}.{side}",
            log=sys.stderr.buffer,
        )
    sink.close()


def become(uid: int | None) -> None:
    """Give up root's rights, and be out of reach of processes that have the same rights afterwards."""
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    library = ctypes.CDLL(None)
    # Candidates have the same user: they may not trace this process or open what it has open.
    library.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    # What a candidate leaves behind when its process dies stays below this one, and ends with it.
    library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""One part of the gates on one candidate: `python -m drivers.attacks.judge REQUEST.json`; torch is needed.

The parts are those of `containers.box.gate`. Device records are calls of interposed libraries, since there is no
GPU: each call of an export counts as an event of one microsecond.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from containers import interpose
from containers.box.gate.subject import Sink, Subject
from drivers.attacks.model import Part
from farm.measured.records import Phase

#: Seconds for one part of one candidate.
LIMIT_S = 300.0
#: Blocks of each timed configuration; a count of calls has no noise that more would average out.
BLOCKS = 2
#: Variants of captured calls.
PROBES = 16
_PHASES = {
    Part.SOURCE: Phase.SOURCE,
    Part.NULL: Phase.NULL,
    Part.TARGET: Phase.TARGET,
    Part.STUB: Phase.STUB,
    Part.HOLLOW: Phase.HOLLOW,
}


def subject_of(table: Mapping[str, Any]) -> Subject:
    """A subject from its JSON."""
    paths = {field.name for field in fields(Subject) if field.type in (Path, "Path")}
    lists = {name for name, value in table.items() if isinstance(value, list)}
    values: dict[str, Any] = {
        name: Path(value) if name in paths else tuple(value) if name in lists else value
        for name, value in table.items()
    }
    return Subject(**values)


def main(request: Path) -> None:
    """Run the part; its records are in the file that the request names."""
    order = json.loads(request.read_text())
    subject, part = subject_of(order["subject"]), Part(order["part"])
    sink = Sink(Path(order["out"]))
    if part in _PHASES:
        from containers.box.gate import rows

        rows.run(subject, _PHASES[part], limit_s=LIMIT_S, sink=sink, python=sys.executable)
    elif part is Part.PROBES:
        from containers.box.gate import probes

        probes.run(subject, limit_s=LIMIT_S, sink=sink, budget=PROBES)
    else:
        _time(subject, sink, Path(order["loops"]), Path(order["scratch"]))
    sink.close()


def _time(subject: Subject, sink: Sink, loops: Path, scratch: Path) -> None:
    from containers.box.gate import timing
    from containers.box.gate.timing.recorder import CountingRecorder

    def record(name: str) -> CountingRecorder:
        counts = interpose.Counts(scratch / f"{name}.counts")
        real = subject.library if name == "target" else loops
        return CountingRecorder(counts.read, interpose.environment(real, counts.path))

    settings = timing.Settings(
        blocks=BLOCKS, most=1, warmup=5, short_ns=0, control_configs=1, late_s=0.15, python=sys.executable
    )
    timing.run(subject, limit_s=LIMIT_S, sink=sink, settings=settings, advise=_Enough, record=record)


class _Enough:
    """Wants no more blocks: what is counted has no noise."""

    def __init__(self, configs: object) -> None:
        del configs

    def add(self, call: object) -> None:
        """See timing.bench.Advice."""

    def ask(self) -> "_Enough":
        """See timing.bench.Advice."""
        return self

    blocks = 0
    control = 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))

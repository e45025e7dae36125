"""Runs an op's own rows in child processes and writes down how each ended and what ran in it."""

import os
import queue
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from containers.box.gate.rows.activity import CuptiRecorder, ExportRecorder
from containers.box.gate.rows.messages import NULLS, Collection, Request
from containers.box.gate.rows.phase import PhaseRun
from containers.box.gate.rows.trees import candidate_files, changed_files, forbidden, tree_with_shim
from containers.box.gate.rows.worker import Worker, base_environment
from containers.box.gate.subject import Sink, Subject
from containers.interpose import RESULT
from containers.interpose import environment as shim_environment
from farm.measured.records import Collected, Foul, Phase

_ROW_LIMIT_S = 600.0
#: Phases in which the candidate runs.
_OF_TARGET = (Phase.TARGET, Phase.STUB, Phase.HOLLOW)
COLLECTOR = "TILEFARM_COLLECTOR_LIBRARY"
_LOG_BYTES = 20_000  #: of each process's output that are kept


def run(
    subject: Subject,
    phase: Phase,
    *,
    null: str | None = None,
    limit_s: float,
    sink: Sink,
    jobs: int = 1,
    row_limit_s: float = _ROW_LIMIT_S,
    collector: Path | None = None,
    python: str = sys.executable,
    home: Path | None = None,
    log: BinaryIO | None = None,
) -> None:
    """Run the rows of one phase; write a Collected for SOURCE and TARGET, and a RowRun for each row.

    NULL runs every null kernel, or the one that is named. At most `jobs` processes run at a time, for at most
    `limit_s` together; one row may take `row_limit_s`. `collector` is the native
    collector of device activity (also named by TILEFARM_COLLECTOR_LIBRARY); without it, `kernels` are the
    library's exports on a machine without a GPU, else None. `home` is a folder that stays between phases of one
    side (compilers cache there, and what one side compiled is not for the other), `log` gets the end of the
    processes' output. `python` has torch and pytest; this process needs neither. The patched tree is copied, for
    the shim has to take its library's place.
    """
    target = phase in _OF_TARGET
    named = os.environ.get(COLLECTOR)
    collector = collector or (Path(named) if named else None)
    changed = changed_files(subject) if target else ()
    barred = forbidden(subject, changed)
    if barred:
        problems = [f"{name}: the patch may not change it" for name in barred]
        _write_collected(subject, phase, None, problems, {}, sink)
        return
    nulls: tuple[str | None, ...] = (None,)
    if phase is Phase.NULL:
        nulls = NULLS if null is None else (null,)
    deadline = time.monotonic() + limit_s
    with tempfile.TemporaryDirectory(prefix="rows-") as name:
        tree = tree_with_shim(subject, Path(name) / "tree") if target else subject.bare.resolve()
        own = home or Path(name) / "home"
        own.mkdir(parents=True, exist_ok=True)
        children = _Children(
            environment=_environment(subject, phase, own),
            folder=Path(name),
            python=python,
            collector=collector,
        )

        def attempt(*, refuse: bool) -> tuple[PhaseRun, bool]:
            children.request = Request(
                tree=str(tree),
                package_path=subject.package_path,
                tests=subject.tests,
                perf=subject.perf,
                backend=subject.target if target else subject.source,
                registry=subject.registry,
                module=subject.target_module if target else subject.source_module,
                guarded=target,
                refuse=refuse,
                source_dsl=subject.source_dsl,
                source_module=subject.source_module,
                candidate=candidate_files(tree, subject.tests, changed),
                collector=collector is not None,
                hollow=phase is Phase.HOLLOW,
                library_place=subject.library_place,
            )
            phase_run = PhaseRun(
                subject=subject.id,
                phase=phase,
                nulls=nulls,
                spawn=children,
                write=sink.write,
                jobs=jobs,
                deadline=deadline,
                row_limit_s=row_limit_s,
            )
            return phase_run, phase_run.run(accept=_whole if refuse else _anything)

        phase_run, accepted = attempt(refuse=target)
        needed = {}
        if not accepted:  # the repo itself may need the source language for its other operators
            needed = {"source_dsl_needed": _why(phase_run.collection)}
            phase_run, _ = attempt(refuse=False)
        counts = {"processes": str(len(children.started)), "deaths": str(phase_run.deaths)}
        facts = {**_merged(phase_run.facts), **counts, **needed}
        problems = [phase_run.problem] if phase_run.problem else []
        for what in dict.fromkeys(phase_run.fouls):
            sink.write(Foul(subject=subject.id, what=f"in the {phase.value} rows {what}"))
        _write_collected(subject, phase, phase_run.collection, problems, facts, sink)
        if log is not None:
            children.write_logs(log, f"{subject.id} {phase}")


class _Children:
    """Starts children of a phase, and remembers them."""

    request: Request

    def __init__(
        self, *, environment: Mapping[str, str], folder: Path, python: str, collector: Path | None
    ) -> None:
        self._environment = environment
        self._folder = folder
        self._python = python
        self._collector = collector
        self.started: list[Worker] = []

    def __call__(self, inbox: "queue.Queue[tuple[Worker, Any]]") -> Worker:
        worker = Worker(
            request=self.request,
            environment=self._environment,
            folder=self._folder,
            number=len(self.started),
            python=self._python,
            recorder=CuptiRecorder(self._collector) if self._collector is not None else ExportRecorder(),
            inbox=inbox,
        )
        self.started.append(worker)
        return worker

    def write_logs(self, log: BinaryIO, title: str) -> None:
        for number, worker in enumerate(self.started):
            log.write(f"== {title}, process {number}\n".encode() + worker.log.read_bytes()[-_LOG_BYTES:] + b"\n")
        log.flush()


def _environment(subject: Subject, phase: Phase, home: Path) -> dict[str, str]:
    base = {**base_environment(home), **subject.environment}
    if phase not in _OF_TARGET:
        return base
    library = subject.library if phase is Phase.TARGET else subject.stub
    result = {RESULT: "0"} if phase is Phase.HOLLOW else {}
    return {**base, **subject.target_environment, **shim_environment(library), **result}


def _whole(collection: Collection) -> bool:
    return bool(collection.rows) and not collection.uncollected


def _anything(_: Collection) -> bool:
    return True


def _why(collection: Collection | None) -> str:
    if collection is None or not collection.uncollected:
        return "no rows without it"
    return "; ".join(collection.uncollected)[:500]


def _merged(facts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Facts of several processes: all different values that were said."""
    said: dict[str, list[str]] = {}
    for process in facts:
        for name, value in process.items():
            if value not in said.setdefault(name, []):
                said[name].append(value)
    return {name: "; ".join(filter(None, values)) for name, values in said.items()}


def _write_collected(
    subject: Subject,
    phase: Phase,
    collection: Collection | None,
    problems: Sequence[str],
    facts: Mapping[str, str],
    sink: Sink,
) -> None:
    if phase not in (Phase.SOURCE, Phase.TARGET):
        return
    record = Collected(
        subject=subject.id,
        phase=phase,
        keys=tuple(row.key for row in collection.rows) if collection else (),
        uncollected=(*(collection.uncollected if collection else ()), *problems),
        process=dict(facts),
    )
    sink.write(record)

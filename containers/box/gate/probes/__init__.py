"""Correctness beyond the repository's own rows: the op on inputs that nobody listed.

`run` captures calls of the op in a choice of the source's rows, varies them (`plan`), has the target and then the
source compute each variant in processes of their own, has exact results computed where a row names a reference,
and writes one `Probe` a variant. This process runs no code of the repository or of the candidate; it makes the
inputs, so both sides get the same bytes, and compares the results. The target's processes have ended before the
source computes its first result.
"""

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from containers import interpose
from containers.box.gate.probes import calls as saved
from containers.box.gate.probes.cases import Case, case_to_plain
from containers.box.gate.probes.compare import Attempt, agrees, from_saved, probe
from containers.box.gate.probes.plan import plan
from containers.box.gate.probes.side import ProcessEnded, Side
from containers.box.gate.subject import Sink, Subject
from farm.measured.records import NOT_RUN

#: Probes of an op, unless `run` is told otherwise.
BUDGET = 100
#: Rows that are run to see calls.
ROWS = 8
#: Elements of a call's tensors; what is larger is made smaller first.
MOST_ELEMENTS = 1 << 20
#: Seconds for one variant on one side: the first call of a shape compiles and tunes.
CASE_LIMIT_S = 150.0
#: Processes of one side: each end costs a start and the compiled code of what is left.
STARTS = 6


class ProbesFailed(Exception):
    """No probe could be made; the text says at which step and why. That is no verdict on the target."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the probes of one subject came to, for the log; rulings come from the records alone."""

    probes: int  #: records written
    calls: int  #: captured calls that were varied
    functions: tuple[str, ...]  #: names in the registry that were watched
    unportable: tuple[str, ...]  #: calls that could not be varied, with the reason
    seconds: float
    log: str  #: what the processes printed, the end of it


def run(
    subject: Subject,
    *,
    limit_s: float,
    sink: Sink,
    budget: int = BUDGET,
    rows: int = ROWS,
    case_limit_s: float = CASE_LIMIT_S,
    scratch: Path | None = None,
) -> Summary:
    """Write the subject's probes to `sink` within about `limit_s` seconds.

    Variants for which time runs out are written with `source_raised` saying so. `scratch` is a folder for inputs
    and results (by default in memory, where /dev/shm has room): up to 40 bytes an element and variant.
    Raises ProbesFailed when no call of the op could be captured.
    """
    folder = Path(tempfile.mkdtemp(prefix="probes-", dir=scratch or _roomy()))
    try:
        return _Run(subject, limit_s, case_limit_s, sink, folder).go(budget, rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    def __init__(self, subject: Subject, limit_s: float, case_limit_s: float, sink: Sink, folder: Path) -> None:
        self._subject = subject
        self._began = time.monotonic()
        self._limit_s = limit_s
        self._case_limit_s = case_limit_s
        self._sink = sink
        self._folder = folder
        self._target = self._side("attempt", subject.target, subject.patched, subject.target_module)
        self._source = self._side("attempt", subject.source, subject.bare, subject.source_module)

    def go(self, budget: int, rows: int) -> Summary:
        """The steps in order; see the module."""
        captured: Side | None = None
        try:
            known = self._started(self._target, "the target could not be imported")
            captured = self._side(
                "capture",
                self._subject.source,
                self._subject.bare,
                self._subject.source_module,
                tests=self._subject.tests,
                comparison=self._subject.comparison,
                names=known["names"],
                own=known["own"],
                most_rows=rows,
                rows_s=0.2 * self._limit_s,
                most_elements=MOST_ELEMENTS,
                out=str(self._folder),
            )
            facts = self._started(captured, "the source's rows could not be run")
            calls = [saved.from_plain(saved.load(Path(file))) for file in facts["calls"]]
            if not calls:
                why = "; ".join(facts["unportable"][:3]) or captured.last_words()
                raise ProbesFailed(f"no call of {', '.join(facts['functions']) or 'the op'} was captured: {why}")
            cases = plan(calls, budget)
            for number, case in enumerate(cases):
                saved.save(self._file("case", number), case_to_plain(case))
            targets = [self._attempt(self._target, "target", i, until=0.55) for i in range(len(cases))]
            self._target.end()
            trusted: dict[str, bool] = {}
            for number, case in enumerate(cases):
                self._compare(number, case, targets[number], captured, trusted)
            return Summary(
                probes=len(cases),
                calls=len(calls),
                functions=tuple(facts["functions"]),
                unportable=tuple(facts["unportable"]),
                seconds=time.monotonic() - self._began,
                log=self._logs(captured),
            )
        finally:
            for side in (self._target, self._source, captured):
                if side is not None:
                    side.end()

    def _compare(self, number: int, case: Case, aim: str | None, captured: Side, trusted: dict[str, bool]) -> None:
        """Have the source compute a variant, then the oracle, and write the record."""
        problem = self._attempt(self._source, "source", number, until=1.0)
        source = self._result("source", number, problem)
        target = self._result("target", number, aim)
        if _NO_TIME in (aim, problem):
            source = target = Attempt(raised=_NO_TIME)
        oracle: dict[str, Any] = {}
        if source.raised is None and trusted.get(case.call.id, True):
            oracle = self._exact(captured, number, source)
        if case.call.id not in trusted:
            # The captured inputs come first; on them the row itself found source and reference to agree.
            trusted[case.call.id] = source.raised is None and agrees(source, oracle)
            oracle = oracle if trusted[case.call.id] else {}
        self._sink.write(probe(self._subject.id, case, source, target, oracle))
        for what in ("case", "target", "source", "exact"):
            self._file(what, number).unlink(missing_ok=True)

    def _attempt(self, side: Side, name: str, number: int, *, until: float) -> str | None:
        """Have a side compute a case into its file. The reason where there is none."""
        left = self._limit_s * until - (time.monotonic() - self._began)
        if left < 1:
            return _NO_TIME
        try:
            if not side.runs:
                if side.starts >= STARTS:
                    return f"{NOT_RUN}{side.starts} processes have died"
                side.start(left)
            limit = min(self._case_limit_s, left)
            side.order(limit, case=str(self._file("case", number)), out=str(self._file(name, number)))
        except ProcessEnded as ended:
            return str(ended) if left > self._case_limit_s or "died" in str(ended) else _NO_TIME
        return None

    def _result(self, name: str, number: int, problem: str | None) -> Attempt:
        if problem is not None:
            return Attempt(raised=problem)
        try:
            return from_saved(saved.load(self._file(name, number)))
        except Exception as error:
            return Attempt(raised=f"its results cannot be read: {type(error).__name__}: {error}"[:300])

    def _exact(self, captured: Side, number: int, source: Attempt) -> dict[str, Any]:
        left = self._limit_s - (time.monotonic() - self._began)
        if not captured.runs or left < 1:
            return {}
        results = [[r.place, str(r.tensor.dtype).removeprefix("torch.")] for r in source.results]
        file = self._file("exact", number)
        try:
            case = str(self._file("case", number))
            captured.order(min(self._case_limit_s, left), case=case, out=str(file), results=results)
            return dict(saved.load(file))
        except (ProcessEnded, OSError):
            return {}

    def _side(self, mode: str, backend: str, tree: Path, module: str, **more: Any) -> Side:
        subject = self._subject
        request = {
            "mode": mode,
            "backend": backend,
            "package": subject.package,
            "module": module,
            "registry": subject.registry,
            **more,
        }
        own = subject.target_environment if backend == subject.target else {}
        environment = {**interpose.environment(subject.library), **subject.environment, **own}
        return Side(
            request=request, tree=tree, path=subject.package_path, environment=environment, folder=self._folder
        )

    def _started(self, side: Side, what: str) -> dict[str, Any]:
        try:
            return side.start(self._limit_s * 0.4)
        except ProcessEnded as ended:
            raise ProbesFailed(f"{what}: {ended}: {side.last_words()}") from None

    def _file(self, what: str, number: int) -> Path:
        return self._folder / f"{what}-{number}"

    def _logs(self, captured: Side) -> str:
        sides = (captured, self._target, self._source)
        return "\n".join(side.log.read_text(errors="replace")[-4000:] for side in sides if side.log.exists())


def _roomy() -> Path | None:
    """/dev/shm where it has room for all files; containers often give it 64 MB. None: the usual place."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and shutil.disk_usage(shared).free >= _ROOM else None


_ROOM = 8 << 30
_NO_TIME = f"{NOT_RUN}no time was left"

"""Correctness beyond the repository's own rows: the op on inputs that nobody listed.

`run` captures calls of the op in a choice of the source's rows, varies them (`plan`), has the target and then the
source compute each variant in processes of their own, has exact results computed where a row names a reference,
and writes one `Probe` a variant. This process runs no code of the repository or of the candidate; it makes the
inputs, so both sides get the same bytes, and compares the results. Variants are spread over workers; the target's
processes of all of them have ended before the source computes its first result.
"""

import queue
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from containers.box.gate.probes import calls as saved
from containers.box.gate.probes.cases import Case, case_to_plain
from containers.box.gate.probes.compare import Attempt, agrees, from_saved, probe
from containers.box.gate.probes.plan import plan, shares
from containers.box.gate.probes.side import ProcessEnded, Side, source_side, target_side
from containers.box.gate.probes.worker import NO_TIME, Worker
from containers.box.gate.subject import Sink, Subject

#: Probes of an op, unless `run` is told otherwise.
BUDGET = 100
#: Rows that are run to see calls.
ROWS = 8
#: Elements of a call's tensors; what is larger is made smaller first.
MOST_ELEMENTS = 1 << 20
#: Seconds for one variant on one side: the first call of a shape compiles and tunes.
CASE_LIMIT_S = 150.0
#: Starting a process and running rows may take at least so long, where there is so much: torch and the repository
#: are imported, and kernels compiled, however short the limit of the whole is.
LEAST_S = 60.0
#: Of the time that is left: the target's share (the source has to start its processes yet), and both sides'.
TARGET_SHARE, BOTH_SHARE = 0.45, 0.95


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
    jobs: int = 1,
    budget: int = BUDGET,
    rows: int = ROWS,
    case_limit_s: float = CASE_LIMIT_S,
    scratch: Path | None = None,
) -> Summary:
    """Write the subject's probes to `sink` within about `limit_s` seconds.

    Variants for which time runs out are written with `source_raised` saying so. At most `jobs` pairs of processes
    compute variants at a time; records come in the order in which they end. `scratch` is a folder for inputs
    and results (by default in memory, where /dev/shm has room): up to 40 bytes an element and variant.
    Raises ProbesFailed when no call of the op could be captured.
    """
    folder = Path(tempfile.mkdtemp(prefix="probes-", dir=scratch or _roomy()))
    try:
        return _Run(subject, limit_s, case_limit_s, sink, folder, max(jobs, 1), rows).go(budget)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    def __init__(
        self, subject: Subject, limit_s: float, case_limit_s: float, sink: Sink, folder: Path, jobs: int, rows: int
    ) -> None:
        self._subject = subject
        self._began = time.monotonic()
        self._limit_s = limit_s
        self._case_limit_s = case_limit_s
        self._sink = sink
        self._folder = folder
        self._trusted: dict[str, bool] = {}
        self._workers = [self._worker(i) for i in range(jobs)]
        self._captured = source_side(
            subject,
            "captured",
            folder,
            mode="capture",
            tests=subject.tests,
            comparison=subject.comparison,
            most_rows=rows,
            most_elements=MOST_ELEMENTS,
            out=str(folder),
        )
        self._arrived: queue.SimpleQueue[tuple[int, str | None] | BaseException] = queue.SimpleQueue()

    def go(self, budget: int) -> Summary:
        """The steps in order; see the module."""
        try:
            with ThreadPoolExecutor(max_workers=len(self._workers) + 1) as pool:
                try:
                    return self._go(pool, budget)
                except BaseException:
                    for worker in self._workers:
                        worker.stop()
                    self._captured.kill()
                    raise
        finally:
            for worker in self._workers:
                worker.end()
            self._captured.end()

    def _go(self, pool: ThreadPoolExecutor, budget: int) -> Summary:
        limit_s = self._share(0.4)
        first, *others = [pool.submit(worker.target.start, limit_s) for worker in self._workers]
        ready = pool.submit(self._captured.start, limit_s)
        known = self._reply("the target could not be imported", self._workers[0].target, first.result)
        self._reply("the source could not be imported", self._captured, ready.result)
        facts = self._captures(known)
        calls = [saved.from_plain(saved.load(Path(file))) for file in facts["calls"]]
        if not calls:
            why = "; ".join(facts["unportable"][:3]) or self._captured.last_words()
            raise ProbesFailed(f"no call of {', '.join(facts['functions']) or 'the op'} was captured: {why}")
        cases = plan(calls, budget)
        for number, case in enumerate(cases):
            saved.save(self._file("case", number), case_to_plain(case))
        for start in others:
            start.exception()  # a worker whose first process did not start makes it anew
        given = shares(cases, len(self._workers))
        for worker in self._workers[len(given) :]:
            worker.end()
        busy = self._workers[: len(given)]
        for worker, numbers in zip(busy, given, strict=True):
            worker.numbers = numbers
        until = self._until(TARGET_SHARE)
        list(pool.map(lambda worker: worker.targets(until), busy))
        self._record(pool, busy, cases)
        return Summary(
            probes=len(cases),
            calls=len(calls),
            functions=tuple(facts["functions"]),
            unportable=tuple(facts["unportable"]),
            seconds=time.monotonic() - self._began,
            log=self._logs(),
        )

    def _captures(self, known: dict[str, Any]) -> dict[str, Any]:
        """Have the source's rows run, for what the target implements."""
        limit_s = self._share(0.4)
        order = {"names": known["names"], "own": known["own"], "rows_s": min(self._share(0.2), 0.75 * limit_s)}
        return self._reply(
            "the source's rows could not be run",
            self._captured,
            lambda: self._captured.order(limit_s, **order),
        )

    def _record(self, pool: ThreadPoolExecutor, workers: Sequence[Worker], cases: Sequence[Case]) -> None:
        """Have the sources compute, and write each record as soon as it can be made.

        A call's captured inputs come first: on them the row itself found source and reference to agree, so they
        tell whether the reference can be trusted. What arrives before them waits.
        """
        aims = {number: aim for worker in workers for number, aim in worker.aims.items()}
        captured: dict[str, int] = {}
        for number, case in enumerate(cases):
            captured.setdefault(case.call.id, number)
        until = self._until(BOTH_SHARE)
        for worker in workers:
            pool.submit(self._sources, worker, until)
        waiting: dict[str, list[tuple[int, str | None]]] = {}
        for number, problem in self._arrivals(len(cases)):
            call = cases[number].call.id
            if call not in self._trusted and number != captured[call]:
                waiting.setdefault(call, []).append((number, problem))
                continue
            for each, its_problem in ((number, problem), *waiting.pop(call, ())):
                self._compare(each, cases[each], aims[each], its_problem)

    def _sources(self, worker: Worker, until: float) -> None:
        try:
            worker.sources(until, lambda number, problem: self._arrived.put((number, problem)))
        except BaseException as error:  # raised again where records are written, which would wait for ever
            self._arrived.put(error)

    def _arrivals(self, count: int) -> Iterator[tuple[int, str | None]]:
        for _ in range(count):
            arrived = self._arrived.get()
            if isinstance(arrived, BaseException):
                raise arrived
            yield arrived

    def _compare(self, number: int, case: Case, aim: str | None, problem: str | None) -> None:
        """Have the exact results computed where they are of use, and write the record."""
        source = self._result("source", number, problem)
        target = self._result("target", number, aim)
        oracle: dict[str, Any] = {}
        if NO_TIME not in (aim, problem) and source.raised is None and self._trusted.get(case.call.id, True):
            exact = self._exact(number, source)
            oracle = exact or {}
            problem = NO_TIME if exact is None else problem
        if NO_TIME in (aim, problem):
            source = target = Attempt(raised=NO_TIME)
        if case.call.id not in self._trusted:
            self._trusted[case.call.id] = source.raised is None and agrees(source, oracle)
            oracle = oracle if self._trusted[case.call.id] else {}
        self._sink.write(probe(self._subject.id, case, source, target, oracle))
        for what in ("case", "target", "source", "exact"):
            self._file(what, number).unlink(missing_ok=True)

    def _result(self, name: str, number: int, problem: str | None) -> Attempt:
        if problem is not None:
            return Attempt(raised=problem)
        try:
            return from_saved(saved.load(self._file(name, number)))
        except Exception as error:
            return Attempt(raised=f"its results cannot be read: {type(error).__name__}: {error}"[:300])

    def _exact(self, number: int, source: Attempt) -> dict[str, Any] | None:
        """Exact results by place, as far as there are some; None: no time was left to look."""
        left = self._left()
        if left < 1:
            return None
        if not self._captured.runs:
            return {}
        results = [[r.place, str(r.tensor.dtype).removeprefix("torch.")] for r in source.results]
        file = self._file("exact", number)
        try:
            case = str(self._file("case", number))
            self._captured.order(min(self._case_limit_s, left), case=case, out=str(file), results=results)
            return dict(saved.load(file))
        except (ProcessEnded, OSError):
            return {}

    def _left(self) -> float:
        return self._began + self._limit_s - time.monotonic()

    def _until(self, share: float) -> float:
        """A share of the time that is left, as a point of the monotonic clock."""
        return time.monotonic() + share * self._left()

    def _share(self, share: float) -> float:
        """Seconds for a step before the first variant: a share of the whole, or LEAST_S where so much is left."""
        return min(max(share * self._limit_s, LEAST_S), self._left())

    def _worker(self, number: int) -> Worker:
        subject = self._subject
        return Worker(
            target=target_side(subject, f"target-{number}", self._folder),
            source=source_side(subject, f"source-{number}", self._folder),
            folder=self._folder,
            case_limit_s=self._case_limit_s,
        )

    def _reply(self, what: str, side: Side, reply: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return reply()
        except ProcessEnded as ended:
            raise ProbesFailed(f"{what}: {ended}: {side.last_words()}") from None

    def _file(self, what: str, number: int) -> Path:
        return self._folder / f"{what}-{number}"

    def _logs(self) -> str:
        sides = (self._captured, *(side for worker in self._workers for side in (worker.target, worker.source)))
        return "\n".join(side.log.read_text(errors="replace")[-4000:] for side in sides if side.log.exists())


def _roomy() -> Path | None:
    """/dev/shm where it has room for all files; containers often give it 64 MB. None: the usual place."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and shutil.disk_usage(shared).free >= _ROOM else None


_ROOM = 8 << 30

"""One phase: hands rows to child processes, watches their time, writes what became of each row."""

import queue
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from containers.box.gate.rows.messages import Collection, Command, ItemName, Noise, ProcessFacts, RowEnd
from containers.box.gate.rows.worker import Worker
from farm.measured.records import Outcome, Phase, RowRun

_TICK_S = 0.1
_GRACE_S = 1.0  #: a dead child's last messages may still be under way
_START_LIMIT_S = 300.0  #: to import torch and the repo, and to collect
_STARTS = 2  #: so often a child may die before it has collected
_RUNS = 3  #: most runs of a row: unwatched, watched, and again if records were lost or a profiler took them


class Spawn(Protocol):
    """Starts a child."""

    def __call__(self, inbox: "queue.Queue[tuple[Worker, Any]]") -> Worker: ...


class PhaseRun:
    """The state of a phase while it runs."""

    def __init__(
        self,
        *,
        subject: str,
        phase: Phase,
        nulls: tuple[str | None, ...],
        spawn: Spawn,
        write: Callable[[RowRun], None],
        jobs: int,
        deadline: float,
        row_limit_s: float,
    ) -> None:
        self._subject = subject
        self._phase = phase
        self._nulls = nulls
        self._spawn = spawn
        self._write = write
        self._jobs = jobs
        self._deadline = deadline
        self._row_limit_s = row_limit_s
        self._inbox: queue.Queue[tuple[Worker, Any]] = queue.Queue()
        self._workers: list[Worker] = []
        self._waiting: deque[Command] = deque()
        self._names: dict[str, ItemName] = {}
        self._again: dict[str, list[int]] = {}  #: rows that passed and run again, with the calls of each run
        self._died: dict[Worker, float] = {}
        self._starts_failed = 0
        self.collection: Collection | None = None
        self.problem: str | None = None  #: why nothing was collected
        self.facts: list[Mapping[str, str]] = []
        self.deaths = 0
        self.fouls: list[str] = []  #: what a child did that only forgery explains

    def run(self, *, accept: Callable[[Collection], bool]) -> bool:
        """Run all rows. False, and nothing is written, if `accept` refuses what the first child collected."""
        try:
            self._start()
            while self._workers:
                self._take(accept)
                if self.collection is not None and not accept(self.collection):
                    return False
                self._watch()
            return True
        finally:
            for worker in self._workers:
                worker.end()

    def _start(self) -> None:
        self._workers.append(self._spawn(self._inbox))

    def _take(self, accept: Callable[[Collection], bool]) -> None:
        """Deal with one message, if one comes soon."""
        try:
            worker, message = self._inbox.get(timeout=_TICK_S)
        except queue.Empty:
            return
        if worker not in self._workers:
            return
        if message is None:
            worker.ended = True
        elif isinstance(message, Collection):
            self._collected(worker, message)
            if accept(message):
                self._next(worker)
        elif isinstance(message, RowEnd):
            if worker.current is not None and worker.current.number == message.number:
                self._ended(worker, worker.current, message)
            else:
                self.fouls.append(f"somebody spoke for the gate: an end of {message.node} that nobody waited for")
        elif isinstance(message, Noise):
            self.fouls.append(f"somebody wrote to the gate's pipe: {message.text}")
        elif isinstance(message, ProcessFacts):
            self.facts.append(message.facts)

    def _collected(self, worker: Worker, collection: Collection) -> None:
        worker.collected = True
        worker.recorder.has_device = collection.has_device
        if self.collection is not None:
            return
        self.collection = collection
        self._names = {row.node: row for row in collection.rows}
        # The target may tune itself with a profiler, which wants CUPTI to itself: its rows run unwatched first.
        watch = self._phase is Phase.SOURCE or not collection.has_device
        self._waiting.extend(
            Command(node=row.node, null=null, watch=watch) for null in self._nulls for row in collection.rows
        )
        for _ in range(min(self._jobs, len(self._waiting)) - 1):
            self._start()

    def _next(self, worker: Worker) -> None:
        worker.current = None
        if self._waiting and not worker.stopping:
            worker.order(self._waiting.popleft())
        else:
            worker.stop()

    def _ended(self, worker: Worker, command: Command, end: RowEnd) -> None:
        calls = worker.calls - worker.calls_before
        seen = worker.recorder.row(end)
        runs = self._again.setdefault(command.node, [])
        runs.append(calls)
        unseen = (not command.watch and self._phase is Phase.TARGET) or seen.taken or seen.lost > 0
        if unseen and end.outcome is Outcome.PASSED and len(runs) < _RUNS and not end.broken:
            worker.order(replace(command, watch=True))
            return
        calls = sum(self._again.pop(command.node))
        fits = end.no_null is None
        run = RowRun(
            subject=self._subject,
            phase=self._phase,
            key=self._names[command.node].key,
            node=command.node,
            outcome=end.outcome if fits else Outcome.NOT_RUN,
            reason=end.reason if fits else end.no_null,
            seconds=end.seconds,
            null=command.null,
            calls=calls,
            kernels=seen.kernels,
            lost=seen.lost,
            results=end.results,
            backwards=end.backwards,
        )
        self._write(run)
        if end.broken:
            worker.current = None
            worker.stop()
            self._replace_if_needed()
        else:
            self._next(worker)

    def _watch(self) -> None:
        """Kill who takes too long, bury who is dead, give up when time is over."""
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.dead:
                since = self._died.setdefault(worker, now)
                if (worker.ended and self._inbox.empty()) or now - since > _GRACE_S:
                    self._bury(worker, worker.obituary())
            elif worker.late:
                self._bury(worker, "its process did not end")
            elif not worker.stopping:
                limit_s = self._row_limit_s if worker.collected else _START_LIMIT_S
                if now - worker.since > limit_s:
                    self._bury(worker, f"no end within {limit_s:g} s")
        if now > self._deadline and not all(worker.stopping for worker in self._workers):
            self._give_up("the phase's time was over")

    def _bury(self, worker: Worker, reason: str) -> None:
        worker.end()
        self._workers.remove(worker)
        if worker.current is not None:
            self._lost(worker.current, reason)
            self.deaths += 1
        elif not worker.collected:
            self._starts_failed += 1
            self.deaths += 1
            if self._starts_failed >= _STARTS:
                self.problem = self.problem or reason
                self._forget(reason)
                return
            if self.collection is None:
                self._start()
                return
        self._replace_if_needed()

    def _replace_if_needed(self) -> None:
        running = [worker for worker in self._workers if not worker.stopping]
        if len(running) < min(self._jobs, len(self._waiting)):
            self._start()

    def _give_up(self, reason: str) -> None:
        self.problem = reason if self.collection is None else None
        for worker in list(self._workers):
            if worker.current is not None:
                self._lost(worker.current, reason)
                worker.current = None
            if not worker.stopping:
                worker.end()
                self._workers.remove(worker)
        self._forget(reason)

    def _forget(self, reason: str) -> None:
        """Give all rows up that wait."""
        while self._waiting:
            self._lost(self._waiting.popleft(), reason)

    def _lost(self, command: Command, reason: str) -> None:
        run = RowRun(
            subject=self._subject,
            phase=self._phase,
            key=self._names[command.node].key,
            node=command.node,
            outcome=Outcome.NOT_RUN,
            reason=reason,
            seconds=0.0,
            null=command.null,
        )
        self._write(run)

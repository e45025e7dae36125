"""The whole run: children, configurations, stages of blocks, records."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from containers.box.gate import collector
from containers.box.gate.subject import Sink, Subject
from containers.box.gate.timing.block import Given, Pair
from containers.box.gate.timing.clocks import Clocks
from containers.box.gate.timing.configs import Chosen, Config, from_calls, from_perf_rows, spread
from containers.box.gate.timing.recorder import CollectorRecorder, Recorder
from containers.box.gate.timing.settings import Settings
from containers.box.gate.timing.side import Side, SideProblem, roles
from farm.measured.records import ConfigFact, TimedCall

COLLECTOR_LIBRARY = "TILEFARM_COLLECTOR_LIBRARY"


class Wanted(Protocol):
    """How many blocks to add to each configuration, and to its control."""

    @property
    def blocks(self) -> int: ...
    @property
    def control(self) -> int: ...


class Advice(Protocol):
    """Says after each stage what is still wanted; `farm.measured.sequential.Sequential` is one."""

    def add(self, call: TimedCall) -> None: ...
    def ask(self) -> Wanted: ...


#: Stands for all configurations where none could be named.
_NONE = Config(key="(all)", kind="perf")


class OutOfTime(Exception):
    """The run's limit is reached."""


class Bench:
    """One run over one subject."""

    def __init__(
        self,
        subject: Subject,
        sink: Sink,
        settings: Settings,
        limit_s: float,
        advise: Callable[[Sequence[str]], Advice],
        record: Callable[[str], Recorder],
    ) -> None:
        self._subject, self._sink, self._settings = subject, sink, settings
        self._deadline, self._limit_s = time.monotonic() + limit_s, limit_s
        self._advise, self._record = advise, record
        self._roles = roles(subject)
        self._sides: dict[str, Side] = {}
        self._restarts = dict.fromkeys(self._roles, 0)
        self._names: list[str] = []
        self._clocks = Clocks()
        self._blocks_done: dict[tuple[str, str], int] = {}
        self._given: dict[tuple[str, str], Given] = {}  #: of all placements
        self._facts: dict[str, ConfigFact] = {}
        self._out_of_time = False

    def run(self) -> None:
        """Time everything; what cannot be timed becomes a ConfigFact with its problem."""
        try:
            chosen = self._choose()
            for config, reason, of in chosen.left_out:
                self._fact(config, problem=reason, of=of)
            if chosen.configs:
                self._stages(list(chosen.configs))
            elif not chosen.left_out:
                self._fact(_NONE, problem="no row gives anything to time", of=None)
        except SideProblem as problem:
            self._fact(_NONE, problem=problem.reason, of=_whose(problem))
        finally:
            self._stop()

    def _choose(self) -> Chosen:
        for name in ("source", "target"):
            self._side(name)
        source, target = self._sides["source"], self._sides["target"]
        self._names = [str(name) for name in target.rows["names"]]
        if source.rows["perf"]:
            return from_perf_rows(source.rows["perf"], target.rows["perf"], self._settings.rows)
        found = source.survey(self._names)
        return from_calls(found, target.rows["cases"], self._settings.generated)

    def _stages(self, configs: list[Config]) -> None:
        """The first stage, then what is advised, until nothing is or a configuration is lost."""
        controls = {configs[i].key for i in spread(len(configs), self._settings.control_configs)}
        first = self._stage(configs, controls, self._settings.blocks, self._settings.blocks)
        timed = [config for config in configs if config.key in {call.config for call in first}]
        timed = [config for config in timed if self._facts[config.key].problem is None]
        if not timed or self._out_of_time:
            return
        advice = self._advise([config.key for config in timed])
        calls = [call for call in first if call.config in {config.key for config in timed}]
        while calls:
            for call in calls:
                advice.add(call)
            wanted = advice.ask()
            if not (wanted.blocks or wanted.control):
                return
            calls = self._stage(timed, controls, wanted.blocks, wanted.control)
            if self._out_of_time or any(self._facts[config.key].problem for config in timed):
                return

    def _stage(self, configs: list[Config], controls: set[str], blocks: int, control: int) -> list[TimedCall]:
        """The same number of blocks of each configuration."""
        calls: list[TimedCall] = []
        for config in configs:
            try:
                calls += self._config(config, blocks, control if config.key in controls else 0)
            except SideProblem as problem:
                self._fact(config, problem=problem.reason, of=_whose(problem))
            except OutOfTime:
                self._out_of_time = True
                said = f"not timed: the limit of {self._limit_s:g} s was reached"
                for left in configs:
                    if left.key not in self._facts:
                        self._fact(left, problem=said, of=None)
                break
        return calls

    def _config(self, config: Config, blocks: int, control: int) -> list[TimedCall]:
        """One stage of one configuration. Raises SideProblem, OutOfTime."""
        calls: list[TimedCall] = []
        for other, wanted in (("target", blocks), ("control", control)):
            left, doubled = wanted, False
            while left:
                done = self._placed(config, other, left)
                calls += done
                left -= len({call.block for call in done})
                if not doubled and _device_ns(done) < self._settings.short_ns:
                    left, doubled = left + wanted, True
        return calls

    def _placed(self, config: Config, other: str, most: int) -> list[TimedCall]:
        """One block with everything at new places in memory; what takes long goes on to `most` blocks there.

        Where the tensors of a short call lie changes its time by some percent, which is the same for all blocks
        there and would pass for a difference of the sides (docs/results/h200.md). Raises SideProblem, OutOfTime.
        """
        place = (config.key, other)
        calls: list[TimedCall] = []
        with self._open(config, ("source", other), self._blocks_done.get(place, 0)) as coarsest:
            pair = Pair(
                self._subject.id,
                config.key,
                self._sides["source"],
                self._sides[other],
                self._clocks,
                self._subject.entries,
                coarsest,
                self._given.setdefault(place, {}),
            )
            for _ in range(most):
                self._in_time()
                number = self._blocks_done.get(place, 0)
                done = pair.block(number, self._settings.calls)
                self._blocks_done[place] = number + 1
                for call in done:
                    self._sink.write(call)
                calls += done
                if _device_ns(done) <= self._settings.long_ns:
                    break
        return calls

    @contextmanager
    def _open(self, config: Config, names: tuple[str, ...], placement: int) -> Iterator[str | None]:
        """A configuration set up on these sides; coarsest dtype of its inputs. Raises SideProblem, OutOfTime."""
        opened: list[str] = []
        facts = {}
        try:
            for name in names:
                self._in_time()
                side = self._side(name)
                facts[name] = side.open(config.kind, config.key, self._names, self._left_s(), placement)
                opened.append(name)
            if config.key not in self._facts:
                self._fact(config, bytes_least=facts["source"].get("bytes_least"))
            yield facts["source"].get("coarsest")
        except SideProblem as problem:
            if problem.fatal or problem.side in opened:
                self._drop(problem.side)
            # What the run's own end cut short is nobody's fault.
            self._in_time()
            raise
        finally:
            for name in opened:
                self._close(name)

    def _side(self, name: str) -> Side:
        """The running child, started (again) if it has to be. Raises SideProblem."""
        if name not in self._sides:
            if self._restarts[name] > self._settings.restarts:
                raise SideProblem(name, f"its process ended {self._restarts[name]} times", fatal=False)
            self._restarts[name] += 1
            side = Side(self._roles[name], self._subject, self._settings, self._record(name))
            self._sides[name] = side
            try:
                side.wait_until_ready()
            except SideProblem:
                self._drop(name)
                raise
        return self._sides[name]

    def _close(self, name: str) -> None:
        if name in self._sides:
            try:
                self._sides[name].close_config()
            except SideProblem:
                self._drop(name)

    def _drop(self, name: str) -> None:
        side = self._sides.pop(name, None)
        if side is not None:
            side.kill()

    def _stop(self) -> None:
        for side in self._sides.values():
            side.stop()
        self._sides = {}

    def _left_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _in_time(self) -> None:
        if self._left_s() <= 0:
            raise OutOfTime

    def _fact(
        self, config: Config, *, bytes_least: int | None = None, problem: str | None = None, of: str | None = None
    ) -> None:
        """Write the fact of a configuration; the last one of a configuration counts."""
        known = self._facts.get(config.key)
        fact = ConfigFact(
            subject=self._subject.id,
            config=config.key,
            origin=config.origin,
            bytes_least=bytes_least if bytes_least is not None or known is None else known.bytes_least,
            problem=problem,
            problem_of=of,
        )
        self._facts[config.key] = fact
        self._sink.write(fact)


def _whose(problem: SideProblem) -> str | None:
    """A control that fails is no fault of the source's code path: the measuring's."""
    return problem.side if problem.side in ("source", "target") else None


def _device_ns(calls: Sequence[TimedCall]) -> int:
    times = sorted(sum(e.end_ns - e.start_ns for e in call.events) for call in calls if call.reference)
    return times[len(times) // 2] if times else 0


def collector_library(subject: Subject) -> Path:
    """Named by TILEFARM_COLLECTOR_LIBRARY, or beside the subject's library."""
    named = os.environ.get(COLLECTOR_LIBRARY)
    return Path(named) if named else subject.library.parent / collector.LIBRARY


def by_collector(subject: Subject) -> Callable[[str], Recorder]:
    """Recorders that use the native collector."""
    library = collector_library(subject)

    def record(_name: str) -> Recorder:
        if not library.is_file():
            raise SideProblem("recorder", f"there is no collector at {library}", fatal=True)
        return CollectorRecorder(library)

    return record

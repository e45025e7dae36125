"""Timing of candidates that run on a CPU: real children, with a recorder that counts calls of their libraries."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from containers import interpose
from containers.box.gate import timing
from containers.box.gate.collector import LIBRARY
from containers.box.gate.subject import Sink, Subject
from containers.box.gate.timing.bench import COLLECTOR_LIBRARY
from containers.box.gate.timing.recorder import CountingRecorder, Recorder
from containers.toolchain import Toolchain
from farm.codec import decode
from farm.measured.records import ConfigFact, TimedCall
from tests import cpugym

ROOT = Path(__file__).resolve().parents[4]
RELU = f"{cpugym.NATIVE}/relu.py"
CALL = '        check_rc(library().cpu_relu(describe(x), describe(y)), "cpu_relu")\n        return y\n'


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one run wrote."""

    facts: tuple[ConfigFact, ...]
    calls: tuple[TimedCall, ...]

    def of_target(self) -> list[TimedCall]:
        return [call for call in self.calls if not call.control and not call.reference]

    def of_reference(self) -> list[TimedCall]:
        return [call for call in self.calls if not call.control and call.reference]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    blocks: int
    control: int


class Stages:
    """Asks for fixed stages after the first."""

    def __init__(self, configs: Sequence[str], later: list[Wanted]) -> None:
        self.configs, self._later = tuple(configs), later

    def add(self, call: TimedCall) -> None:
        assert call.config in self.configs

    def ask(self) -> Wanted:
        return self._later.pop(0) if self._later else Wanted(blocks=0, control=0)


def time_it(
    subject: Subject,
    folder: Path,
    toolchain: Toolchain,
    *,
    later: Sequence[Wanted] = (),
    lose: frozenset[int] = frozenset(),
    limit_s: float = 120.0,
    **settings: int | float,
) -> Result:
    """Run timing with two blocks of two calls, and read what it wrote."""
    loops = subject.bare / "src/loop/libloops.so"
    real_loops = folder / "real_loops.so"
    shutil.copy(loops, real_loops)
    shutil.copy(interpose.build(real_loops, folder / "loops", prefix="").shim, loops)
    shutil.copy(subject.shim, subject.patched / subject.library_place)

    def record(name: str) -> Recorder:
        counts = interpose.Counts(folder / f"{name}.counts")
        real = subject.library if name == "target" else real_loops
        lost = lose if name == "target" else frozenset()
        return CountingRecorder(counts.read, interpose.environment(real, counts.path), lose=lost)

    chosen = timing.Settings(
        **{  # type: ignore[arg-type]
            "blocks": 2,
            "warmup": 1,
            "short_ns": 0,
            "control_configs": 0,
            "late_s": 0.2,
            "call_s": 20.0,
            "open_s": 20.0,
            "python": str(toolchain.python),
            **settings,
        }
    )
    path = folder / "timing.jsonl"
    sink = Sink(path)
    timing.run(
        subject,
        limit_s=limit_s,
        sink=sink,
        settings=chosen,
        advise=lambda configs: Stages(configs, list(later)),
        record=record,
    )
    sink.close()
    facts: dict[str, ConfigFact] = {}
    calls = []
    for line in path.read_text().splitlines():
        record_ = json.loads(line)
        if record_.pop("record") == "ConfigFact":
            fact = decode(ConfigFact, record_)
            facts[fact.config] = fact
        else:
            calls.append(decode(TimedCall, record_))
    return Result(facts=tuple(facts.values()), calls=tuple(calls))


def candidate(body: str) -> Callable[[Path], None]:
    """An edit that puts `body` in place of the honest call of the library."""
    return lambda tree: cpugym.replace(tree / RELU, CALL, body)


def test_calls_alternate_within_each_block_and_honest_outputs_agree(tmp_path: Path, toolchain: Toolchain) -> None:
    result = time_it(cpugym.subject(tmp_path, "relu"), tmp_path, toolchain, control_configs=1)

    assert [(fact.problem, fact.origin) for fact in result.facts] == [(None, "perf row")] * 2
    assert all(fact.bytes_least for fact in result.facts)
    first = [call for call in result.calls if call.config == result.facts[0].config]
    measured = [(call.block, call.slot, call.repeat, call.reference) for call in first if not call.control]
    assert measured == [
        (block, slot, repeat, slot in (0, 3)) for block in range(2) for slot in range(4) for repeat in range(2)
    ]
    assert Counter(call.control for call in result.calls) == {False: 32, True: 16}
    assert all(call.same_output and call.late == 0 and call.lost == 0 for call in result.calls)
    assert {event.symbol for call in result.of_target() for event in call.events} == {"cpu_relu"}
    assert {event.symbol for call in result.of_reference() for event in call.events} == {"relu_kernel"}
    assert {len(call.events) for call in result.calls} == {1}


def test_a_cached_output_is_not_the_same(tmp_path: Path, toolchain: Toolchain) -> None:
    cached = CALL.replace("return y", "_CACHE.setdefault(x.data_ptr(), y)\n        return _CACHE[x.data_ptr()]")

    def edit(tree: Path) -> None:
        candidate(cached)(tree)
        cpugym.replace(tree / RELU, "class _Relu", "_CACHE = {}\n\n\nclass _Relu")

    result = time_it(cpugym.subject(tmp_path, "relu", edit), tmp_path, toolchain)
    assert result.of_target()
    assert not any(call.same_output for call in result.of_target())


@pytest.mark.long
def test_an_output_that_is_not_written_is_not_the_same(tmp_path: Path, toolchain: Toolchain) -> None:
    skipping = "        return y\n"
    result = time_it(cpugym.subject(tmp_path, "relu", candidate(skipping)), tmp_path, toolchain)
    assert not any(call.same_output for call in result.of_target())


def test_work_on_another_thread_after_the_call_is_late(tmp_path: Path, toolchain: Toolchain) -> None:
    aside = """\
        import threading, time
        def work(a=describe(x), b=describe(y), keep=(x, y)):
            time.sleep(0.05)
            library().cpu_relu(a, b)
        threading.Thread(target=work).start()
        return y
"""
    result = time_it(cpugym.subject(tmp_path, "relu", candidate(aside)), tmp_path, toolchain)
    last = [call for call in result.of_target() if call.repeat == 1]
    assert last
    assert all(call.late for call in last)
    assert not any(call.late for call in result.of_reference())


@pytest.mark.long
def test_a_lazy_tensor_is_refused_by_its_type(tmp_path: Path, toolchain: Toolchain) -> None:
    lazy = "        class Lazy(torch.Tensor):\n            pass\n        return y.as_subclass(Lazy)\n"
    result = time_it(cpugym.subject(tmp_path, "relu", candidate(lazy)), tmp_path, toolchain)
    assert [fact.problem_of for fact in result.facts] == ["target"] * 2
    assert all("no plain tensor" in (fact.problem or "") for fact in result.facts)


@pytest.mark.long
def test_a_crash_of_one_configuration_leaves_the_others(tmp_path: Path, toolchain: Toolchain) -> None:
    crash = "        if x.numel() == 1 << 12:\n            import os\n            os.abort()\n" + CALL
    result = time_it(cpugym.subject(tmp_path, "relu", candidate(crash)), tmp_path, toolchain)
    crashed, whole = result.facts
    assert crashed.problem_of == "target"
    assert "signal 6: Fatal Python error: Aborted" in (crashed.problem or "")
    assert whole.problem is None
    assert {call.config for call in result.of_target()} == {whole.config}


@pytest.mark.long
def test_an_error_of_the_candidate_is_said_in_its_words(tmp_path: Path, toolchain: Toolchain) -> None:
    wrong = "        raise RuntimeError('no tile fits')\n"
    result = time_it(cpugym.subject(tmp_path, "relu", candidate(wrong)), tmp_path, toolchain)
    assert {(fact.problem, fact.problem_of) for fact in result.facts} == {("RuntimeError: no tile fits", "target")}


@pytest.mark.long
def test_a_candidate_that_hangs_is_ended_at_its_limit(tmp_path: Path, toolchain: Toolchain) -> None:
    hang = "        import time\n        time.sleep(600)\n"
    result = time_it(
        cpugym.subject(tmp_path, "relu", candidate(hang)), tmp_path, toolchain, open_s=3.0, restarts=0
    )
    assert result.facts[0].problem == "no answer within 3 s"
    assert {fact.problem_of for fact in result.facts} == {"target"}


@pytest.mark.long
def test_a_lost_record_stays_with_its_call(tmp_path: Path, toolchain: Toolchain) -> None:
    result = time_it(cpugym.subject(tmp_path, "relu"), tmp_path, toolchain, lose=frozenset({3, 5}))
    assert sum(call.lost for call in result.of_target()) == 2
    assert not any(call.lost for call in result.of_reference())


@pytest.mark.long
def test_an_op_without_rows_that_measure_is_timed_on_its_largest_calls(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    subject = replace(cpugym.subject(tmp_path, "relu"), perf=())
    result = time_it(subject, tmp_path, toolchain, generated=2)
    assert [fact.origin for fact in result.facts] == ["generated"] * 2
    assert [fact.problem for fact in result.facts] == [None] * 2
    assert "(8, 64)" in result.facts[0].config
    assert all(call.same_output for call in result.calls)


@pytest.mark.long
def test_rows_that_the_settings_leave_out_are_named(tmp_path: Path, toolchain: Toolchain) -> None:
    result = time_it(cpugym.subject(tmp_path, "relu"), tmp_path, toolchain, rows=1)
    problems = [fact.problem for fact in result.facts if fact.problem]
    assert problems == ["left out by the settings, which time 1 of 2 rows"]
    assert len({call.config for call in result.calls}) == 1


@pytest.mark.long
def test_a_later_stage_goes_on_with_the_next_block(tmp_path: Path, toolchain: Toolchain) -> None:
    result = time_it(
        cpugym.subject(tmp_path, "relu"),
        tmp_path,
        toolchain,
        later=[Wanted(blocks=1, control=0)],
        rows=1,
    )
    assert [call.block for call in result.of_target()] == [0] * 4 + [1] * 4 + [2] * 4


@pytest.mark.long
def test_a_limit_of_time_names_what_was_not_timed(tmp_path: Path, toolchain: Toolchain) -> None:
    result = time_it(cpugym.subject(tmp_path, "relu"), tmp_path, toolchain, limit_s=0.0)
    assert {fact.problem for fact in result.facts} == {"not timed: the limit of 0 s was reached"}
    assert {fact.problem_of for fact in result.facts} == {None}


def test_a_missing_collector_is_no_fault_of_a_side(tmp_path: Path) -> None:
    path = tmp_path / "timing.jsonl"
    sink = Sink(path)
    timing.run(cpugym.subject(tmp_path, "relu"), limit_s=10, sink=sink)
    sink.close()
    (line,) = path.read_text().splitlines()
    fact = json.loads(line)
    assert fact["problem_of"] is None
    assert fact["problem"].startswith("there is no collector at")


def test_a_driver_that_does_not_load_the_collector_is_no_fault_of_a_side(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = shutil.copytree(ROOT / "containers/native/collector", tmp_path / "collector")
    subprocess.run(["make", "install", f"PREFIX={tmp_path}"], cwd=source, check=True, capture_output=True)
    monkeypatch.setenv(COLLECTOR_LIBRARY, str(tmp_path / "lib" / LIBRARY))
    path = tmp_path / "timing.jsonl"
    sink = Sink(path)
    settings = timing.Settings(python=str(toolchain.python))
    timing.run(cpugym.subject(tmp_path, "relu"), limit_s=60, sink=sink, settings=settings)
    sink.close()
    (line,) = path.read_text().splitlines()
    fact = json.loads(line)
    assert fact["problem"] == "device records cannot be collected: NOT_LOADED"
    assert fact["problem_of"] is None


@pytest.mark.parametrize("op", ["scale", "add"])
@pytest.mark.long
def test_other_ops_are_timed_too(op: str, tmp_path: Path, toolchain: Toolchain) -> None:
    result = time_it(cpugym.subject(tmp_path, op), tmp_path, toolchain)
    assert result.calls
    assert all(call.same_output for call in result.calls), [fact.problem for fact in result.facts]

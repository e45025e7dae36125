"""The trace of a failed attempt says what ended it, in whichever step that was."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from farm.codec import decode, encode
from farm.fault import Fault
from farm.job import Accept, Job, JobState
from farm.ledger import Ledger
from farm.report.evidence import GATES, RESULT
from farm.report.trace import Trace
from farm.store import MemoryStore
from tests.unit.report.builders import certified, stage_b_failed
from workers.spine import Failed, Notes
from workers.traces import write_trace

SAID = {
    "stage": stage_b_failed().result,
    "gates passed": certified().gates,
    "gates failed": certified(same=False).gates,
}


class Bench:
    """A ledger with one job, and a store."""

    def __init__(self, tmp_path: Path) -> None:
        self.store = MemoryStore()
        self.ledger = Ledger(f"sqlite:///{tmp_path / 'l.db'}")
        run = self.ledger.submit(
            recipe="r", repo="x", push_to=None, base="b", accept=Accept.CERTIFIED, attempts=1, ops=["relu"]
        )
        (self.job,) = self.ledger.jobs(run=run.id)

    def trace(self, state: JobState, failed: Failed, kept: dict[str, str] | None = None) -> Trace:
        job: Job = replace(self.job, state=state, attempt=1)
        digest = write_trace(self.ledger, self.store, job, failed, kept or {})
        return decode(Trace, json.loads(self.store.get(digest)))

    def keep(self, what: object) -> str:
        return self.store.put(json.dumps(encode(what)).encode())


@pytest.fixture
def bench(tmp_path: Path):
    made = Bench(tmp_path)
    yield made
    made.ledger.close()


@pytest.mark.parametrize("state", [JobState.PREPARING, JobState.RUNNING, JobState.VERIFYING])
def test_an_error_of_a_step_without_evidence_is_the_trace(bench: Bench, state: JobState) -> None:
    log = bench.store.put(b"first\nlast words\n")
    failed = Failed(fault=Fault.INFRA, summary="the box is gone; see who removed it")
    trace = bench.trace(state, failed, {"box.log": log})
    assert (trace.where, trace.summary, trace.fault) == (state.value, failed.summary, Fault.INFRA)
    assert trace.next_step
    assert any("last words" in item.text for item in trace.evidence)


def test_a_stage_says_more_than_the_step_that_read_it(bench: Bench) -> None:
    artifacts = {RESULT: bench.keep(SAID["stage"])}
    failed = Failed(fault=Fault.UNSUPPORTED, summary="short", notes=Notes(artifacts=artifacts))
    trace = bench.trace(JobState.RUNNING, failed)
    assert trace.where == "stage B, visit 1"
    assert trace.first_error is not None


def test_a_failed_gate_says_more_than_the_step_that_read_it(bench: Bench) -> None:
    artifacts = {GATES: bench.keep(SAID["gates failed"])}
    failed = Failed(fault=Fault.KERNEL, summary="correctness: rows", notes=Notes(artifacts=artifacts))
    trace = bench.trace(JobState.VERIFYING, failed)
    assert trace.where == "verifying, gate correctness"
    assert trace.fault is Fault.KERNEL


@pytest.mark.parametrize("state", [JobState.VERIFYING, JobState.LANDING])
def test_a_refusal_after_passed_gates_says_why(bench: Bench, state: JobState) -> None:
    kept = {GATES: bench.keep(SAID["gates passed"])}
    failed = Failed(fault=Fault.INFRA, summary="the remote is read-only; give --push-to", final=True)
    trace = bench.trace(state, failed, kept)
    assert (trace.where, trace.summary) == (state.value, failed.summary)


def test_evidence_that_cannot_be_read_does_not_hide_the_error(bench: Bench) -> None:
    kept = {RESULT: bench.store.put(b"[" * 100_000), GATES: bench.store.put(b"\xff")}
    trace = bench.trace(JobState.RUNNING, Failed(fault=Fault.INTEGRITY, summary="result.json is no record"), kept)
    assert (trace.where, trace.summary) == ("running", "result.json is no record")

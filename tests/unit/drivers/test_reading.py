import json
from pathlib import Path

import pytest

from drivers.requests import SubmitRequest
from farm.errors import UnknownJob, UnknownRun
from farm.fault import Fault
from farm.job import Accept, JobState, ParkReason, Run
from farm.ledger import Change
from farm.report.evidence import GATES, RESULT
from farm.report.trace import build_trace
from tests.unit.drivers.bench import REPO, Bench
from tests.unit.report.builders import FINDING, certified, stage_b_failed


def submitted(bench: Bench, ops: str = "relu,scale") -> Run:
    return bench.service.submit(
        SubmitRequest(
            ops=ops,
            repo=REPO,
            base=None,
            recipe="cutile-rs",
            attempts=None,
            accept=Accept.CERTIFIED,
            push_to=None,
        )
    )


def test_a_run_is_settled_when_every_job_is_final_or_waits(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench)
    assert not bench.reader.run_view(run).settled
    bench.accept(f"{run.id}.relu")
    for state in (JobState.PREPARING, JobState.RUNNING, JobState.CAPTURED, JobState.VERIFYING):
        bench.advance(f"{run.id}.scale", state)
    assert not bench.reader.run_view(run).settled
    bench.advance(f"{run.id}.scale", JobState.AWAITING_GPU)
    view = bench.reader.run_view(run)
    assert (view.settled, view.exit_code) == (True, 3)
    assert view.counts == {"awaiting_gpu": 1, "accepted": 1}


def test_a_job_is_found_by_id_or_by_the_op_of_its_newest_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first = submitted(bench)
    bench.now += 60
    second = submitted(bench, "relu")
    assert bench.reader.find_job("relu").run == second.id
    assert bench.reader.find_job("scale").run == first.id
    assert bench.reader.find_job(f"{first.id}.relu").run == first.id
    assert bench.reader.find_run(None).id == second.id
    with pytest.raises(UnknownJob):
        bench.reader.find_job("wave")
    with pytest.raises(UnknownRun):
        bench.reader.find_run("r-nothing")


def test_detail_counts_rows_and_signatures_of_the_kept_gate_report(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench, "relu")
    job_id = f"{run.id}.relu"
    for state in (JobState.PREPARING, JobState.RUNNING, JobState.CAPTURED, JobState.VERIFYING):
        bench.advance(job_id, state)
    gates = bench.keep(certified().gates)
    bench.advance(job_id, JobState.AWAITING_GPU, Change(artifacts={GATES: gates}))
    view = bench.reader.detail(bench.ledger.job(job_id))
    assert (view.rows_collected, view.rows_expected) == (1, 1)
    assert (view.signatures_same, view.signatures_total) == (1, 1)
    assert [event.action for event in view.events][:2] == ["submitted", "attempt_started"]
    assert any(GATES in name for name in view.artifacts)


def test_the_diagnosis_of_a_failed_stage_comes_from_the_kept_result(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench, "relu")
    result = bench.keep(stage_b_failed().result)
    bench.fail(
        f"{run.id}.relu",
        Change(fault=Fault.UNSUPPORTED, summary="pipeline diagnosed", artifacts={RESULT: result}),
    )
    trace = bench.reader.diagnosis(bench.ledger.job(f"{run.id}.relu")).trace
    assert trace is not None
    assert trace.first_error == FINDING
    assert trace.where == "stage B, visit 1"


def test_a_kept_trace_is_shown_as_it_was_written_with_the_state_of_now(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench, "relu")
    job = bench.ledger.job(f"{run.id}.relu")
    kept = build_trace(run, job.evolve(attempt=1, summary="written then"), ())
    bench.fail(job.id, Change(fault=Fault.UNSUPPORTED, summary="no rule"), trace=kept)
    trace = bench.reader.diagnosis(bench.ledger.job(job.id)).trace
    assert trace is not None
    assert (trace.summary, trace.state) == ("written then", JobState.FAILED)


def test_a_step_that_failed_without_a_box_is_diagnosed_with_its_state(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench, "relu")
    bench.fail(f"{run.id}.relu", Change(fault=Fault.HANG, summary="no heartbeat for 60 s"))
    trace = bench.reader.diagnosis(bench.ledger.job(f"{run.id}.relu")).trace
    assert trace is not None
    assert (trace.where, trace.fault, trace.summary) == ("running", Fault.HANG, "no heartbeat for 60 s")


def test_an_accepted_job_has_no_trace_and_a_parked_one_says_its_reason(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench)
    bench.accept(f"{run.id}.relu")
    assert bench.reader.diagnosis(bench.ledger.job(f"{run.id}.relu")).accepted
    bench.advance(f"{run.id}.scale", JobState.PREPARING)
    bench.advance(f"{run.id}.scale", JobState.PARKED, Change(park_reason=ParkReason.DISK))
    trace = bench.reader.diagnosis(bench.ledger.job(f"{run.id}.scale")).trace
    assert trace is not None
    assert "disk" in trace.where


def test_logs_hold_the_history_and_the_kept_logs_of_every_attempt(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench, "relu")
    log = bench.store.put(b"cargo: error \xff\n")
    bench.fail(
        f"{run.id}.relu",
        Change(fault=Fault.KERNEL, summary="does not compile", artifacts={"B-1.log": log, "out": log}),
    )
    text = bench.reader.logs(bench.ledger.job(f"{run.id}.relu")).text
    assert "submitted" in text
    assert "== attempt 1: B-1.log\ncargo: error" in text
    assert text.count("cargo") == 1
    assert json.dumps(text)

import json

import pytest

from farm import codec
from farm.fault import Fault, Owner
from farm.job import FINAL, JobState, ParkReason
from farm.orders import Diagnosis
from farm.pipeline.stage import Stage
from farm.report.advice import fault_advice, park_advice, state_advice
from farm.report.evidence import AttemptEvidence, StepError
from farm.report.render import trace_json, trace_markdown
from farm.report.trace import Trace, build_trace, describe
from tests.builders import RUN, job
from tests.unit.report.builders import FINDING, certified, stage_b_failed


def test_a_failed_stage_gives_place_owner_and_the_findings_advice() -> None:
    failed = job("wave", JobState.FAILED, fault=Fault.UNSUPPORTED)
    trace = build_trace(RUN, failed, (stage_b_failed(),))
    assert trace.stage is Stage.B
    assert trace.where == "stage B, visit 1"
    assert trace.owner is Owner.KERNEL
    assert trace.first_error == FINDING
    assert trace.next_step == "write it as a polynomial"
    assert [(e.label, e.text) for e in trace.evidence] == [
        ("validator kernel-compiles (B-1)", "exit 1: no kernel.rs")
    ]
    assert [t.what for t in trace.tried] == ["A-1 (program)", "B-1 (program)"]


def test_a_step_error_outweighs_what_the_box_said_before_it() -> None:
    attempt = stage_b_failed()
    error = StepError(state=JobState.LANDING, fault=Fault.INFRA, message="remote is read-only", log_tail="denied")
    ended = AttemptEvidence(number=1, result=attempt.result, error=error, artifacts=("out/patch.bin",))
    trace = build_trace(RUN, job("wave", JobState.FAILED, fault=Fault.INFRA), (ended,))
    assert trace.where == "landing"
    assert trace.summary == "remote is read-only"
    assert trace.stage is None
    assert {e.label for e in trace.evidence} >= {"last lines of the box", "kept file"}


def test_a_step_that_only_reports_its_box_leaves_the_word_to_the_stage() -> None:
    attempt = stage_b_failed()
    error = StepError(state=JobState.RUNNING, fault=Fault.UNSUPPORTED, message="the pipeline ended diagnosed")
    ended = AttemptEvidence(number=1, result=attempt.result, error=error)
    trace = build_trace(RUN, job("wave", JobState.FAILED, fault=Fault.UNSUPPORTED), (ended,))
    assert trace.where == "stage B, visit 1"
    assert trace.first_error == FINDING


def test_a_failing_gate_names_the_first_differing_signature() -> None:
    trace = build_trace(RUN, job("relu", JobState.FAILED, fault=Fault.KERNEL), (certified(same=False),))
    assert trace.where == "verifying, gate correctness"
    assert trace.first_error is not None
    assert "relu.k against relu_kernel, signature 1f3a" in trace.first_error.message
    assert ("gate executed", "not_run: not run") in [(e.label, e.text) for e in trace.evidence]


def test_a_gate_box_that_could_not_build_is_diagnosed_with_its_own_next_step() -> None:
    attempt = certified(same=False)
    assert attempt.gates is not None
    report = codec.decode(type(attempt.gates), codec.encode(attempt.gates))
    diagnosis = Diagnosis(stage=None, fault=Fault.KERNEL, summary="does not build", next_step="see cargo.log")
    broken = AttemptEvidence(
        number=1, gates=type(report)(**{**report.__dict__, "diagnosis": diagnosis, "certificate": None})
    )
    trace = build_trace(RUN, job("relu", JobState.FAILED, fault=Fault.KERNEL), (broken,))
    assert (trace.where, trace.summary, trace.next_step) == ("verifying", "does not build", "see cargo.log")


def test_a_waiting_job_says_what_it_waits_for() -> None:
    parked = job("relu", JobState.PARKED, park_reason=ParkReason.DISK, parked_from=JobState.PREPARING)
    trace = build_trace(RUN, parked, ())
    assert trace.where == "parked (disk)"
    assert trace.fault is None
    assert "free space" in trace.next_step


def test_the_command_to_reproduce_names_repo_base_and_recipe() -> None:
    trace = build_trace(RUN, job("relu", JobState.CANCELLED), ())
    where = f"--repo builtin:minigym --base {'b' * 40}"
    assert trace.reproduce == f"farm one-shot relu {where} --recipe cutile-rs --accept certified"


@pytest.mark.parametrize("state", [s for s in JobState if s is not JobState.ACCEPTED])
def test_every_state_renders_as_markdown_and_comes_back_from_json(state: JobState) -> None:
    reason = ParkReason.ENGINE if state is JobState.PARKED else None
    for attempts in ((), (stage_b_failed(),), (stage_b_failed(None),), (certified(False),)):
        trace = build_trace(RUN, job("relu", state, park_reason=reason), attempts)
        text = trace_markdown(trace)
        assert trace.next_step in text
        assert trace.reproduce in text
        assert codec.decode(Trace, json.loads(trace_json(trace))) == trace


def test_every_fault_park_reason_and_state_has_advice() -> None:
    sentences = [fault_advice(f) for f in Fault] + [park_advice(r) for r in ParkReason]
    sentences += [state_advice(job("relu", state)) for state in FINAL]
    assert all(len(s) > 10 for s in sentences)
    assert len(set(sentences)) == len(sentences)


def test_a_finding_is_described_with_as_much_place_as_is_known() -> None:
    assert describe(FINDING).startswith("src/pkg/ops/cutile/wave.py:14:9: sin has no")

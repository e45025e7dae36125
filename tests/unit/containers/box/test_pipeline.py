"""The loop in the box: records, resumption, diagnoses, with scripted executors."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box.executors import ScriptedExecutor
from containers.box.files import write_json
from containers.box.heartbeat import Heartbeat
from containers.box.io import LocalBoxIO
from containers.box.pipeline import run_pipeline
from farm.fault import Fault, Owner
from farm.pipeline.stage import ExecutorKind, Finding, Reply, Stage, Verdict
from farm.recipes.unvalidated import Unvalidated
from tests.builders import order, shipped_routes

TABLE = shipped_routes()

ORDER = order(executors=dict.fromkeys(Stage, ExecutorKind.SCRIPTED), caps=dict(TABLE.caps))


def step(stage, verdict=None, *, visit=1, owner=None, fault=None, files=None, findings=(), summary=""):
    reply = None
    if verdict is not None:
        reply = {
            "verdict": verdict,
            "owner": owner,
            "fault": fault,
            "fail_class": None,
            "findings": findings,
            "summary": summary,
        }
    return {"stage": stage, "visit": visit, "reply": reply, "files": files or {}}


STRAIGHT = [
    step("A", "PASS"),
    step("B", "COMPILED", files={"src/kernel.rs": "fn k() {}\n"}),
    step("D", "DEFERRED"),
    step("E", "DEFERRED"),
]


@pytest.fixture
def walk(tmp_path):
    def run(steps, out=None):
        script = tmp_path / "script.json"
        script.write_text(json.dumps({"steps": steps}))
        (tmp_path / "work").mkdir(exist_ok=True)
        out = out or tmp_path / "out"
        out.mkdir(exist_ok=True)
        return run_pipeline(
            ORDER,
            {ExecutorKind.SCRIPTED: ScriptedExecutor(script)},
            TABLE,
            Unvalidated(),
            workspace=tmp_path / "work",
            out=out,
            toolchain=tmp_path,
        )

    return run


def test_a_straight_route_completes_and_leaves_a_record_per_stage(walk, tmp_path):
    result = walk(STRAIGHT)
    assert result.complete
    assert result.diagnosis is None
    assert [r.stage for r in result.records] == [Stage.A, Stage.B, Stage.D, Stage.E]
    assert (tmp_path / "work/src/kernel.rs").read_text() == "fn k() {}\n"
    assert sorted(p.name for p in (tmp_path / "out/stages").iterdir()) == [
        "A-1.json",
        "B-1.json",
        "D-1.json",
        "E-1.json",
    ]


def test_a_killed_box_resumes_without_running_finished_stages_again(walk, tmp_path):
    walk(STRAIGHT[:2])  # ends in a stop: the script says nothing for D
    for name in ("D-1.json", "D-1-repair.json"):
        (tmp_path / "out/stages" / name).unlink()
    (tmp_path / "work/src/kernel.rs").write_text("edited since\n")
    result = walk(STRAIGHT)
    assert result.complete
    assert (tmp_path / "work/src/kernel.rs").read_text() == "edited since\n"


def test_a_malformed_reply_is_repaired_once_and_then_ends_the_run(walk):
    result = walk([step("A")])
    assert not result.complete
    assert [r.malformed for r in result.records] == ["scripted", "scripted"]
    assert result.diagnosis.fault is Fault.AGENT


def test_a_failure_carries_its_stage_fault_and_advice(walk):
    finding = {
        "file": "ops/k.py",
        "line": 3,
        "column": 5,
        "construct": "ct.atomic_add",
        "message": "no rule",
        "advice": "write a reduction",
    }
    stop = step("B", "BLOCKED", owner="kernel", fault="unsupported", findings=[finding], summary="no rule for x")
    diagnosis = walk([step("A", "PASS"), stop]).diagnosis
    assert (diagnosis.stage, diagnosis.fault) == (Stage.B, Fault.UNSUPPORTED)
    assert diagnosis.next_step == "write a reduction"


def test_the_stage_that_failed_is_diagnosed_not_the_one_that_looked_at_it(walk):
    result = walk(
        [
            *STRAIGHT[:2],
            step("D", "FAIL", owner="kernel", fault="kernel", summary="row 3 is wrong"),
            step("C", "PASS", summary="the IR is the same"),
        ]
    )
    assert result.diagnosis.stage is Stage.D
    assert result.diagnosis.summary == "row 3 is wrong"


def test_an_executor_the_box_does_not_have_stops_the_run(tmp_path):
    (tmp_path / "out").mkdir()
    order = replace(ORDER, executors=dict.fromkeys(Stage, ExecutorKind.AGENT))
    result = run_pipeline(
        order, {}, TABLE, Unvalidated(), workspace=tmp_path, out=tmp_path / "out", toolchain=tmp_path
    )
    assert result.diagnosis.fault is Fault.ENV
    assert "no agent executor" in result.diagnosis.summary


def test_records_survive_a_round_trip(tmp_path):
    reply = Reply(
        verdict=Verdict.FAIL,
        owner=Owner.HOST,
        fault=Fault.AGENT,
        fail_class=None,
        findings=(Finding(file="a", line=1, column=None, construct=None, message="m", advice=None),),
    )
    write_json(tmp_path / "x.json", reply)
    assert not (tmp_path / "x.json.partial").exists()
    assert json.loads((tmp_path / "x.json").read_text())["owner"] == "host"


def test_a_process_past_its_limit_is_killed_with_its_children(tmp_path):
    io = LocalBoxIO(workspace=tmp_path, out=tmp_path, toolchain=tmp_path, log=tmp_path / "log")
    marker = tmp_path / "child"
    script = f"(sleep 3; touch {marker}) & sleep 60"
    result = io.run(["/bin/sh", "-c", script], cwd=tmp_path, env=dict(os.environ), timeout_s=0.3)
    assert result.timed_out
    assert result.exit_code == -9
    time.sleep(3.2)
    assert not marker.exists()
    assert "timed out" in (tmp_path / "log").read_text()


def test_the_heartbeat_file_exists_from_the_start(tmp_path: Path):
    with Heartbeat(tmp_path / "heartbeat"):
        assert (tmp_path / "heartbeat").exists()

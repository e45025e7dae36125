"""The commands through typer's runner: what they print and how they end."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from drivers.cli.app import build_app
from drivers.cli.context import MemoryHost, MemoryToolchain, Wiring
from drivers.doctor import gpu, model, program, run_checks
from drivers.service import FarmService
from farm import codec
from farm.fault import Fault
from farm.job import JobState, ParkReason, Run, WaitsFor
from farm.ledger import Change, Usage
from farm.pipeline.stage import Stage
from farm.report.evidence import RESULT
from farm.views import (
    DOCUMENTS,
    ChangedView,
    DiagnosisView,
    DoctorView,
    ErrorView,
    JobDetailView,
    LogsView,
    OpsView,
    RecipeChecksView,
    ReportView,
    RunView,
    ServiceView,
    StatusView,
    ToolchainView,
    TranscriptView,
    UsageView,
)
from tests.unit.drivers.bench import Bench
from tests.unit.report.builders import stage_b_failed
from workers.gateway.client import Probed


class Command:
    """The `farm` command over a bench; `script` is what happens while it waits, one entry a pause."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.script: list[Any] = []
        self.healthy = True
        self.host = MemoryHost()
        self._toolchain = MemoryToolchain()
        self.probed = Probed(works=True, why="", model="m", seconds=1.0, micro_usd=3)

    def run(self, *args: str, code: int = 0) -> Result:
        """Run it; it has to end with `code`."""
        result = CliRunner().invoke(build_app(self._wiring()), list(args))
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def document(self, cls: type[Any], *args: str, code: int = 0) -> Any:
        """Run it with --json; stdout has to be exactly one document of the class."""
        return codec.decode(cls, json.loads(self.run(*args, "--json", code=code).stdout))

    def submitted(self, ops: str) -> Run:
        """A run with these ops."""
        self.run("submit", "--ops", ops, "--accept", "certified")
        return self.bench.reader.find_run(None)

    def _wiring(self) -> Wiring:
        found = program("git", "install it", which=lambda _: "/git" if self.healthy else None)
        return Wiring(
            service=self._service,
            host=lambda: self.host,
            doctor=lambda: run_checks((("git", lambda: found), ("gpu", lambda: gpu(())))),
            probe=lambda: model(self.probed),
            toolchain=lambda: self._toolchain,
            torch_python=lambda: pytest.fail("no command of these tests runs torch"),
            gates=lambda: pytest.fail("no command of these tests works with gates"),
            advance=lambda: self._advance,
            target_path=lambda repo: f"/at/{repo}",
            stopped=lambda: False,
            pause=self._pause,
            clock=lambda: self.bench.now,
        )

    def _service(self, *, embedded: bool = True) -> FarmService:
        return self.bench.service

    def _pause(self, _seconds: float) -> None:
        self.script.pop(0)()

    def _advance(self, job_id: str) -> float | None:
        self.bench.accept(job_id)
        return 0.0


@pytest.fixture
def farm(tmp_path: Path) -> Command:
    return Command(Bench(tmp_path))


def interrupt() -> None:
    raise KeyboardInterrupt


def test_ops_lists_the_target_repo_in_a_table_and_as_a_document(farm: Command) -> None:
    text = farm.run("ops").stdout
    assert "4 ops, 1 landed" in text
    view = farm.document(OpsView, "ops")
    assert [op.name for op in view.ops] == ["add_bias", "relu", "scale", "silu_and_mul"]


def test_submit_without_wait_says_how_to_watch(farm: Command) -> None:
    text = farm.run("submit", "--ops", "relu").stdout
    run = farm.bench.reader.find_run(None)
    assert f"farm status {run.id} --wait" in text
    assert run.accept.value == "measured"


def test_submit_with_wait_prints_a_line_a_change_and_ends_with_0_when_all_are_accepted(farm: Command) -> None:
    def accept() -> None:
        for job in farm.bench.ledger.jobs():
            farm.bench.accept(job.id)

    farm.script = [accept]
    text = farm.run("submit", "--ops", "relu,scale", "--accept", "certified", "--wait").stdout
    assert "relu: queued" in text
    assert "scale: queued -> accepted: landed" in text
    assert "git -C /at/builtin:minigym show farm-certified/cutile-rs/relu" in text
    report = text.rpartition("report: ")[2].strip()
    assert Path(report).read_text().count("accepted") > 2


def test_submit_with_wait_ends_with_4_when_one_failed_and_names_the_command_that_says_why(farm: Command) -> None:
    def fail() -> None:
        (job,) = farm.bench.ledger.jobs()
        farm.bench.fail(job.id, Change(fault=Fault.UNSUPPORTED, summary="no rule for sin"))

    farm.script = [fail]
    text = farm.run("submit", "--ops", "relu", "--wait", code=4).stdout
    run = farm.bench.reader.find_run(None)
    assert "no rule for sin" in text
    assert f"farm diagnose {run.id}.relu" in text


def test_ops_lists_what_cannot_be_read_with_its_place_and_what_to_do(farm: Command) -> None:
    text = farm.run("ops", "--repo", "/broken").stdout
    assert "relu cannot be read: tests/ops/test_relu.py:1:5: not readable as Python: invalid syntax;" in text
    ops = {op.name: op for op in farm.document(OpsView, "ops", "--repo", "/broken").ops}
    assert [(p.file, p.line, p.column) for p in ops["relu"].problems] == [("tests/ops/test_relu.py", 1, 5)]
    assert (ops["relu"].rows, ops["scale"].rows, ops["scale"].problems) == (None, 7, ())


def test_submit_with_wait_ends_with_3_when_a_job_waits_for_a_gpu(farm: Command) -> None:
    def await_gpu() -> None:
        (job,) = farm.bench.ledger.jobs()
        for state in ("preparing", "running", "captured", "verifying", "awaiting_gpu"):
            farm.bench.advance(job.id, JobState(state))

    farm.script = [await_gpu]
    assert farm.document(RunView, "submit", "--ops", "relu", "--wait", code=3).settled


def test_waiting_with_json_keeps_stdout_to_the_document(farm: Command) -> None:
    farm.script = [lambda: farm.bench.accept(farm.bench.ledger.jobs()[0].id)]
    result = farm.run("submit", "--ops", "relu", "--wait", "--json")
    assert codec.decode(RunView, json.loads(result.stdout)).exit_code == 0
    assert "queued -> accepted" in result.stderr


def test_ctrl_c_while_waiting_leaves_the_run_going_and_says_how_to_watch_it(farm: Command) -> None:
    farm.script = [interrupt]
    result = farm.run("submit", "--ops", "relu", "--wait", code=3)
    run = farm.bench.reader.find_run(None)
    assert f"farm status {run.id} --wait" in result.stderr
    (job,) = farm.bench.ledger.jobs(run=run.id)
    assert not job.cancel_requested


def test_status_waits_as_submit_does(farm: Command) -> None:
    run = farm.submitted("relu")
    farm.script = [lambda: farm.bench.accept(f"{run.id}.relu")]
    assert farm.document(RunView, "status", run.id, "--wait").counts == {"accepted": 1}


def test_status_lists_runs_or_shows_one(farm: Command) -> None:
    assert "no runs yet" in farm.run("status").stdout
    run = farm.submitted("relu,scale")
    assert farm.document(StatusView, "status").runs[0].id == run.id
    assert farm.document(RunView, "status", run.id).counts == {"queued": 2}
    assert "scale" in farm.run("status", run.id).stdout


def test_status_tells_a_job_that_waits_for_a_box_from_one_that_has_it(farm: Command) -> None:
    run = farm.submitted("relu,scale")
    farm.bench.wait_for_a_box(f"{run.id}.relu")
    farm.bench.advance(f"{run.id}.scale", JobState.PREPARING)
    jobs = {job.op: job for job in farm.document(RunView, "status", run.id).jobs}
    assert (jobs["relu"].state, jobs["relu"].waits_for) == (JobState.RUNNING, WaitsFor.BOX)
    assert jobs["scale"].waits_for is None
    assert "1 running (1 wait for a box)" in farm.run("status").stdout
    assert "waits for a box" in farm.run("status", run.id).stdout
    assert "waits for a box" in farm.run("show", "relu").stdout


def test_one_shot_takes_the_steps_in_this_process(farm: Command) -> None:
    farm.script = [lambda: None] * 3
    view = farm.document(RunView, "one-shot", "relu", "--accept", "certified")
    assert view.counts == {"accepted": 1}


def test_ctrl_c_in_a_one_shot_says_that_the_run_rests(farm: Command) -> None:
    farm.script = [interrupt]
    assert "rests where it is" in farm.run("one-shot", "relu", code=0).stderr


def test_show_logs_and_diagnose_describe_one_job(farm: Command) -> None:
    run = farm.submitted("relu")
    result = farm.bench.keep(stage_b_failed().result)
    change = Change(fault=Fault.UNSUPPORTED, summary="no rule", artifacts={RESULT: result})
    farm.bench.fail(f"{run.id}.relu", change)
    assert farm.document(JobDetailView, "show", "relu").job.fault is Fault.UNSUPPORTED
    assert "not run" in farm.run("show", "relu").stdout
    assert "attempt_started" in farm.document(LogsView, "logs", f"{run.id}.relu").text
    trace = farm.document(DiagnosisView, "diagnose", "relu").trace
    assert trace is not None
    assert trace.next_step == "write it as a polynomial"
    assert "write it as a polynomial" in farm.run("diagnose", "relu").stdout


def test_logs_follow_a_job_until_it_rests(farm: Command) -> None:
    run = farm.submitted("relu")
    farm.script = [lambda: farm.bench.accept(f"{run.id}.relu")]
    text = farm.run("logs", "relu", "-f").stdout
    assert text.count("submitted") == 1
    assert "-> accepted" in text.splitlines()[-1]


def test_logs_show_what_a_running_box_has_written_so_far(farm: Command) -> None:
    run = farm.submitted("relu")
    for state in (JobState.PREPARING, JobState.RUNNING):
        farm.bench.advance(f"{run.id}.relu", state)
    farm.bench.box_writes(f"{run.id}.relu", "$ trace\ncollected 8 rows\n")
    text = farm.document(LogsView, "logs", "relu").text
    assert "== attempt 1: A-1.log, so far\n$ trace\ncollected 8 rows" in text


def test_logs_follow_a_box_while_it_runs_and_end_with_all_of_its_log(farm: Command) -> None:
    run = farm.submitted("relu")
    job = f"{run.id}.relu"
    bench = farm.bench
    for state in (JobState.PREPARING, JobState.RUNNING):
        bench.advance(job, state)
    bench.box_writes(job, "one\n")
    kept = bench.store.put(b"one\ntwo\nthree\n")
    farm.script = [
        lambda: bench.box_writes(job, "two\n"),
        lambda: bench.advance(
            job, JobState.FAILED, Change(fault=Fault.INFRA, summary="x", artifacts={"A-1.log": kept})
        ),
    ]
    lines = farm.run("logs", "relu", "-f").stdout.splitlines()
    assert [line for line in lines if line.startswith("A-1")] == ["A-1.log: one", "A-1.log: two", "A-1.log: three"]


def test_diagnose_of_an_accepted_job_names_its_commit(farm: Command) -> None:
    run = farm.submitted("relu")
    farm.bench.accept(f"{run.id}.relu")
    assert "c" * 40 in farm.run("diagnose", "relu").stdout
    assert farm.document(DiagnosisView, "diagnose", "relu").accepted


def test_cancel_retry_and_report(farm: Command) -> None:
    run = farm.submitted("relu,scale")
    assert farm.document(ChangedView, "cancel", f"{run.id}.relu").jobs == (f"{run.id}.relu",)
    farm.bench.fail(f"{run.id}.scale", Change(fault=Fault.INFRA, summary="engine gone"))
    again = farm.document(RunView, "retry", f"{run.id}.scale")
    assert [job.op for job in again.jobs] == ["scale"]
    view = farm.document(ReportView, "report", run.id)
    assert Path(view.html).is_file()


def test_cancel_says_when_it_takes_effect(farm: Command) -> None:
    run = farm.submitted("relu,scale")
    farm.bench.advance(f"{run.id}.relu", JobState.PREPARING)
    text = farm.run("cancel", run.id).stdout
    assert f"{run.id}.relu is cancelled at its next step" in text
    assert f"{run.id}.scale is cancelled\n" in text
    farm.bench.stopped = True
    view = farm.document(ChangedView, "cancel", run.id)
    assert (view.jobs, view.ended, view.needs_up) == ((f"{run.id}.relu",), (), True)
    assert "at the next `farm up`" in farm.run("cancel", run.id).stdout


def test_down_names_what_it_leaves_behind_and_what_goes_on_with_it(farm: Command) -> None:
    farm.host.jobs_left = ("r-1.relu",)
    farm.host.boxes_left = tuple(f"tilefarm-box-{number}" for number in range(12))
    text = farm.run("down").stdout
    assert "1 job at rest: r-1.relu" in text
    assert "12 boxes still running: tilefarm-box-0, " in text
    assert "tilefarm-box-9 and 2 more" in text
    assert "`farm up` goes on with them" in text
    assert farm.document(ServiceView, "down").jobs_left == ("r-1.relu",)
    farm.host.jobs_left = farm.host.boxes_left = ()
    assert len(farm.run("down").stdout.splitlines()) == 1


def test_up_down_toolchain_and_worker(farm: Command) -> None:
    assert farm.document(ServiceView, "up").running
    assert "2 tasks" in farm.run("up").stdout
    assert not farm.document(ServiceView, "down").running
    assert "farm toolchain install" in farm.run("toolchain", "status").stdout
    assert farm.document(ToolchainView, "toolchain", "install").installed
    assert "cutile 0.2.0" in farm.run("toolchain", "status").stdout
    farm.run("worker")
    farm.run("gateway")


def test_every_command_is_listed_by_help(farm: Command) -> None:
    text = farm.run("--help").stdout
    names = [
        "ops",
        "submit",
        "status",
        "show",
        "logs",
        "diagnose",
        "cancel",
        "retry",
        "report",
        "doctor",
        "recipe",
        "one-shot",
        "worker",
        "up",
        "down",
        "gateway",
        "usage",
        "budget",
        "transcript",
    ]
    for name in (*names, "toolchain", "ir"):
        assert f"\n  {name} " in text


def test_doctor_asks_the_model_when_it_is_told_to(farm: Command) -> None:
    assert "model" not in farm.run("doctor").stdout
    assert "m answers in 1.0 s" in farm.run("doctor", "--model").stdout
    farm.probed = Probed(works=False, why="status 401", model="m", seconds=1.0, micro_usd=0)
    view = farm.document(DoctorView, "doctor", "--model", code=1)
    assert not view.healthy
    assert view.checks[-1].detail == "m: status 401"


def test_usage_adds_up_what_calls_cost_and_says_what_an_accepted_op_cost(farm: Command) -> None:
    assert farm.run("usage").stdout == "no model was asked\n"
    run = farm.submitted("relu,scale")
    for number, op in enumerate(("relu", "relu", "scale")):
        farm.bench.ledger.add_usage(usage(run, op, number, whole=number != 1))
    text = farm.run("usage", run.id).stdout
    assert "no op is accepted" in text
    assert "2 (1 broken)" in text
    farm.bench.accept(f"{run.id}.relu")
    view = farm.document(UsageView, "usage", run.id)
    assert [(row.op, row.stage, row.calls) for row in view.rows] == [("relu", "B", 2), ("scale", "B", 1)]
    assert (view.total.cost_micro_usd, view.total.broken, view.total.cache_read_tokens) == (60_000, 1, 12)
    assert (view.accepted, view.accepted_micro_usd) == (1, 60_000)
    assert "$0.06; 1 ops accepted, $0.06 each" in farm.run("usage").stdout


def test_a_budget_is_stored_with_the_run_and_raised_later(farm: Command) -> None:
    farm.run("submit", "--ops", "relu", "--accept", "certified", "--budget", "1.50")
    run = farm.bench.reader.find_run(None)
    assert run.budget_micro_usd == 1_500_000
    job = f"{run.id}.relu"
    for state in (JobState.PREPARING, JobState.RUNNING):
        farm.bench.advance(job, state)
    farm.bench.advance(job, JobState.PARKED, Change(park_reason=ParkReason.BUDGET))
    farm.bench.nudged.clear()
    assert "is looked at again" in farm.run("budget", run.id, "$3").stdout
    assert farm.bench.nudged == [job]
    assert farm.bench.ledger.run(run.id).budget_micro_usd == 3_000_000
    for wrong in ("much", "-1", "nan", "0.0000001"):
        farm.run("budget", run.id, "--", wrong, code=2)


def test_a_transcript_shows_who_said_what(farm: Command) -> None:
    run = farm.submitted("relu")
    job = f"{run.id}.relu"
    assert "no model was asked" in farm.run("transcript", job).stdout
    farm.bench.advance(job, JobState.PREPARING)
    asked = {
        "system": "be brief",
        "tools": [{"name": "bash"}],
        "messages": [{"role": "user", "content": "go [red]"}],
    }
    use = {"type": "tool_use", "name": "bash", "input": {"command": "ls"}}
    line = {"stage": "B", "new": asked, "answer": {"content": [use], "stop_reason": "tool_use"}, "tries": ["cut"]}
    result = [{"type": "tool_result", "content": "a.rs", "is_error": True}]
    more = {
        "stage": "C",
        "new": {"messages": [{"role": "user", "content": result}]},
        "outcome": "parked",
        "why": "late",
    }
    farm.bench.talk = [line, more]
    text = farm.run("transcript", job).stdout
    for part in (
        "stage B",
        "be brief",
        "go [red]",
        'bash {"command": "ls"}',
        "try that failed: cut",
        "error: a.rs",
    ):
        assert part in text
    view = farm.document(TranscriptView, "transcript", job, "--agent", "C")
    assert [(call.stage, call.outcome, call.why) for call in view.calls] == [("C", "parked", "late")]


def usage(run: Run, op: str, number: int, *, whole: bool) -> Usage:
    return Usage(
        request=f"req_{number}",
        run=run.id,
        job=f"{run.id}.{op}",
        op=op,
        attempt=1,
        stage=Stage.B,
        visit=1,
        step=number + 1,
        model="m",
        at=1.0,
        input_tokens=1,
        cache_write_5m_tokens=2,
        cache_write_1h_tokens=3,
        cache_read_tokens=4,
        output_tokens=5,
        cost_micro_usd=20_000,
        prices="2026-01-01",
        whole=whole,
    )


def test_doctor_ends_with_1_when_a_check_is_an_error(farm: Command) -> None:
    assert farm.document(DoctorView, "doctor").healthy
    farm.healthy = False
    assert "install it" in farm.run("doctor", code=1).stdout


def test_recipe_check_lists_all_mistakes_at_once_and_ends_with_2(farm: Command, tmp_path: Path) -> None:
    assert "no mistakes" in farm.run("recipe", "check").stdout
    broken = tmp_path / "mine" / "recipe.toml"
    broken.parent.mkdir()
    broken.write_text('name = "Mine"\nextra = 1\n')
    (check,) = farm.document(RecipeChecksView, "recipe", "check", str(broken), code=2).recipes
    assert len(check.problems) > 3


def test_recipe_check_takes_a_folder_of_this_folder_by_its_bare_name(
    farm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.toml").write_text("extra = 1\n")
    (tmp_path / "cutile-rs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "mine/recipe.toml" in farm.run("recipe", "check", "mine", code=2).stdout
    assert "no mistakes" in farm.run("recipe", "check", "cutile-rs").stdout
    assert "no such file" in farm.run("recipe", "check", "./cutile-rs", code=2).stdout
    assert "no folder of that name" in farm.run("recipe", "check", "gone", code=2).stderr


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (("submit", "--ops", "rleu"), "UnknownOp", "did you mean relu?"),
        (("submit", "--ops", "relu", "--repo", "/gone"), "RepositoryError", "check --repo"),
        (("submit", "--ops", "relu", "--repo", "/empty"), "RepositoryError", ""),
        (("submit", "--ops", "relu", "--base", "gone"), "RepositoryError", "check --base"),
        (("submit", "--ops", "relu", "--recipe", "gone"), "ConfigurationError", "cutile-rs"),
        (("status", "r-gone"), "UnknownRun", "farm status"),
        (("show", "gone"), "UnknownJob", "farm status"),
        (("submit",), "UsageError", "--ops"),
        (("gone",), "UsageError", "gone"),
        (("submit", "--ops", "relu", "--attempts", "0"), "UsageError", "attempts"),
    ],
)
def test_a_mistake_is_one_clear_message_and_exit_code_2(
    farm: Command, args: tuple[str, ...], error: str, words: str
) -> None:
    view = farm.document(ErrorView, *args, code=2)
    assert (view.error, view.exit_code) == (error, 2)
    assert words in view.message
    plain = farm.run(*args, code=2)
    assert plain.stdout == ""
    assert "Traceback" not in plain.stderr
    assert words in plain.stderr
    assert farm.bench.ledger.runs() == ()


def test_a_defect_is_one_message_with_exit_code_1_and_a_traceback_only_with_debug(farm: Command) -> None:
    farm.script = []  # the first pause finds nothing to do and raises IndexError
    result = farm.run("submit", "--ops", "relu", "--wait", code=1)
    assert "IndexError" in result.stderr
    assert "--debug" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in farm.run("--debug", "submit", "--ops", "relu", "--wait", code=1).stderr


def test_every_document_names_its_kind_and_the_schema_version() -> None:
    kinds = [codec.encode(document.__dataclass_fields__["kind"].default) for document in DOCUMENTS]
    assert len(set(kinds)) == len(DOCUMENTS)
    assert all(document.__dataclass_fields__["schema"].default == 1 for document in DOCUMENTS)

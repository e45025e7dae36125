import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from drivers.cli.watch import ASK_EVERY, LiveTable, PlainLines, Vigil, wait_until_settled
from drivers.requests import SubmitRequest
from farm.fault import Fault
from farm.job import Accept, JobState, Run
from farm.ledger import Change, Charge
from farm.views import RunView
from tests.unit.drivers.bench import REPO, Bench


def submitted(bench: Bench) -> Run:
    request = SubmitRequest(
        ops="relu,scale",
        repo=REPO,
        base=None,
        recipe="cutile-rs",
        attempts=None,
        accept=Accept.CERTIFIED,
        push_to=None,
    )
    return bench.service.submit(request)


def test_plain_lines_say_each_change_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench)
    lines: list[str] = []
    steps = [
        lambda: bench.advance(f"{run.id}.relu", JobState.PREPARING),
        lambda: None,
        lambda: bench.advance(f"{run.id}.scale", JobState.PREPARING),
        lambda: bench.ledger.request_cancel(f"{run.id}.relu"),
    ]

    def pause() -> None:
        if steps:
            steps.pop(0)()
        else:
            for op in ("relu", "scale"):
                if bench.ledger.job(f"{run.id}.{op}").state is not JobState.CANCELLED:
                    bench.advance(f"{run.id}.{op}", JobState.CANCELLED, Change(summary="by request"))

    wait_until_settled(lambda: bench.service.run(run), PlainLines(lines.append, lambda: 0.0), pause)
    assert [line.partition(" ")[2] for line in lines] == [
        "relu: queued",
        "scale: queued",
        "relu: queued -> preparing",
        "scale: queued -> preparing",
        "relu: preparing -> cancelled: by request",
        "scale: preparing -> cancelled: by request",
    ]


def test_a_second_attempt_is_told_apart_from_the_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench)
    job_id = f"{run.id}.relu"
    lines: list[str] = []
    progress = PlainLines(lines.append, lambda: 0.0)
    bench.advance(job_id, JobState.PREPARING)
    progress.show(bench.service.run(run))
    bench.advance(job_id, JobState.QUEUED, Change(charge=Charge.ATTEMPT, fault=Fault.KERNEL, summary="wrong"))
    bench.advance(job_id, JobState.PREPARING)
    progress.show(bench.service.run(run))
    assert any("preparing -> preparing (attempt 2)" in line for line in lines)


def test_a_job_that_waits_for_a_box_says_so_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench)
    lines: list[str] = []
    progress = PlainLines(lines.append, lambda: 0.0)
    bench.wait_for_a_box(f"{run.id}.relu")
    for _ in range(2):
        progress.show(bench.service.run(run))
    bench.advance(f"{run.id}.relu", JobState.CAPTURED)
    progress.show(bench.service.run(run))
    assert [line.partition(" ")[2] for line in lines if "relu" in line] == [
        "relu: running (waits for a box)",
        "relu: running (waits for a box) -> captured",
    ]


def test_the_live_table_is_entered_shown_and_left_even_when_waiting_is_interrupted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)

    def pause() -> None:
        raise KeyboardInterrupt

    try:
        wait_until_settled(lambda: bench.service.run(run), LiveTable(console), pause)
    except KeyboardInterrupt:
        assert console._live_stack == []
    assert "relu" in screen.getvalue()


def test_a_settled_run_is_looked_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = submitted(bench)
    view = replace(bench.service.run(run), settled=True)
    looks: list[RunView] = []

    def look() -> RunView:
        looks.append(view)
        return view

    wait_until_settled(look, PlainLines(lambda _: None, lambda: 0.0), lambda: None)
    assert len(looks) == 1


def test_a_stopped_farm_is_said_once_and_again_after_it_had_run() -> None:
    answers = [True, True, False, True]
    said: list[str] = []
    vigil = Vigil(pause=lambda: None, stopped=lambda: answers.pop(0), say=said.append)
    for _ in range(2 * ASK_EVERY):
        vigil()
    assert len(said) == 1
    assert "farm up" in said[0]
    for _ in range(2 * ASK_EVERY):
        vigil()
    assert len(said) == 2

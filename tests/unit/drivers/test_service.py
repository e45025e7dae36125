from pathlib import Path

import pytest

from drivers.requests import SubmitRequest
from farm.errors import (
    ConfigurationError,
    EngineUnavailable,
    FarmError,
    RepositoryError,
    UnknownOp,
    UsageError,
)
from farm.fault import Fault
from farm.job import Accept, JobState
from farm.ledger import Change
from farm.pipeline.stage import ExecutorKind
from tests.unit.drivers.bench import BASE, REPO, Bench


def request(ops: str = "all", **changes: object) -> SubmitRequest:
    fields = {
        "ops": ops,
        "repo": REPO,
        "base": None,
        "recipe": "cutile-rs",
        "attempts": None,
        "accept": Accept.CERTIFIED,
        "push_to": None,
    }
    return SubmitRequest(**{**fields, **changes})  # type: ignore[arg-type] # the test names real fields


def test_ops_are_found_with_kernels_rows_and_landed_implementations(tmp_path: Path) -> None:
    view = Bench(tmp_path).service.ops(repo=REPO, base=None, recipe="cutile-rs")
    assert view.base == BASE
    assert {op.name: (op.rows, len(op.kernels), op.landed) for op in view.ops} == {
        "add_bias": (8, 1, False),
        "relu": (8, 1, False),
        "scale": (7, 2, False),
        "silu_and_mul": (8, 1, True),
    }


def test_a_submit_stores_one_queued_job_an_op_and_tells_the_workers(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = bench.service.submit(request("missing"))
    jobs = bench.ledger.jobs(run=run.id)
    assert [job.op for job in jobs] == ["add_bias", "relu", "scale"]
    assert {job.state for job in jobs} == {JobState.QUEUED}
    assert bench.nudged == [job.id for job in jobs]
    assert run.base == BASE
    assert run.attempts == 2  # the recipe's


def test_an_op_that_cannot_be_read_gets_a_job_beside_the_others_and_is_told_of(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = bench.service.submit(request("all", repo="/broken"))
    assert [job.op for job in bench.ledger.jobs(run=run.id)] == ["add_bias", "relu", "scale", "silu_and_mul"]
    (said,) = bench.said
    assert "op 'relu' cannot be read: tests/ops/test_relu.py:1:5: not readable as Python" in said
    assert "the others go on" in said


def test_an_op_that_cannot_be_read_is_refused_by_name_and_its_neighbours_are_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(RepositoryError, match=r"'relu' cannot be read: tests/ops/test_relu.py:1:5.*correct"):
        bench.service.submit(request("scale,relu", repo="/broken"))
    assert bench.ledger.runs() == ()
    bench.service.submit(request("scale", repo="/broken"))
    assert bench.said == []


def test_a_repo_in_which_no_op_can_be_read_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(RepositoryError, match="'scale' cannot be read"):
        bench.service.submit(request("all", repo="/hopeless"))
    assert bench.ledger.runs() == ()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (request("rleu"), UnknownOp),
        (request(repo="/gone"), RepositoryError),
        (request(base="gone"), RepositoryError),
        (request(repo="/empty"), RepositoryError),
        (request(recipe="gone"), ConfigurationError),
        (request(","), UsageError),
    ],
)
def test_a_bad_request_leaves_nothing_behind(tmp_path: Path, wrong: SubmitRequest, error: type[FarmError]) -> None:
    touched: list[str] = []
    bench = Bench(tmp_path, preflight=[lambda: touched.append("machine")])
    with pytest.raises(error):
        bench.service.submit(wrong)
    assert bench.ledger.runs() == ()
    assert bench.nudged == []
    assert touched == []
    assert bench.sources.kept is False


def test_a_look_that_succeeds_keeps_what_it_fetched(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.service.ops(repo=REPO, base=None, recipe="cutile-rs")
    assert bench.sources.kept is True


def test_a_machine_that_cannot_run_jobs_refuses_before_anything_is_stored(tmp_path: Path) -> None:
    def no_engine() -> None:
        raise EngineUnavailable

    bench = Bench(tmp_path, preflight=[no_engine])
    with pytest.raises(EngineUnavailable, match="install Docker"):
        bench.service.submit(request())
    assert bench.ledger.runs() == ()


def test_cancel_of_a_run_asks_for_every_job_that_is_not_final(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = bench.service.submit(request("relu,scale"))
    bench.accept(f"{run.id}.relu")
    view = bench.service.cancel(run.id)
    assert view.jobs == (f"{run.id}.scale",)
    assert bench.ledger.job(f"{run.id}.scale").cancel_requested
    assert not bench.ledger.job(f"{run.id}.relu").cancel_requested


def test_cancel_of_one_job_leaves_its_siblings_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = bench.service.submit(request("relu,scale"))
    assert bench.service.cancel(f"{run.id}.relu").jobs == (f"{run.id}.relu",)
    assert not bench.ledger.job(f"{run.id}.scale").cancel_requested


def test_cancel_of_something_unknown_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Bench(tmp_path).service.cancel("r-nothing")


def test_where_no_model_can_be_asked_agents_are_refused_and_auto_goes_on_without(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.no_gateway = "there is no key; set one"
    with pytest.raises(ConfigurationError, match="there is no key"):
        bench.service.submit(request("relu", executors=ExecutorKind.AGENT))
    assert bench.ledger.runs() == ()
    bench.service.submit(request("relu"))
    assert bench.said == []
    bench.service.submit(request("relu", executors=ExecutorKind.AUTO, budget="2"))
    assert bench.said == ["no agent takes over where a program gives up: there is no key; set one"]
    bench.no_gateway = None
    bench.service.submit(request("relu", executors=ExecutorKind.AGENT))
    assert len(bench.said) == 1


def test_retry_makes_a_new_run_for_the_failed_op_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = bench.service.submit(request("relu,scale", budget="1"))
    job_id = f"{run.id}.relu"
    with pytest.raises(UsageError, match="queued"):
        bench.service.retry(bench.ledger.job(job_id))
    bench.fail(job_id, Change(fault=Fault.UNSUPPORTED, summary="no rule"))
    again = bench.service.retry(bench.ledger.job(job_id))
    assert again.id != run.id
    assert (again.base, again.accept, again.repo) == (run.base, run.accept, run.repo)
    assert again.budget_micro_usd == run.budget_micro_usd == 1_000_000
    assert [job.op for job in bench.ledger.jobs(run=again.id)] == ["relu"]
    assert bench.ledger.job(job_id).state is JobState.FAILED


def test_a_report_is_written_from_what_the_ledger_and_the_store_hold(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = bench.service.submit(request("relu,scale"))
    bench.accept(f"{run.id}.relu")
    bench.fail(f"{run.id}.scale", Change(fault=Fault.UNSUPPORTED, summary="no rule for sin"))
    view = bench.service.report(run)
    for path in (view.html, view.markdown, view.json):
        text = Path(path).read_text()
        assert "no rule for sin" in text
        assert "cccccccccccc" in text
    assert bench.service.run(run).report == view.html


def test_all_recipes_or_one_by_name_or_path_are_checked(tmp_path: Path) -> None:
    service = Bench(tmp_path).service
    found = {view.recipe: view.problems for view in service.check_recipe(None)}
    assert found == {"cutile-rs": (), "plain-copy": ()}
    broken = tmp_path / "mine" / "recipe.toml"
    broken.parent.mkdir()
    broken.write_text('name = "Mine"\nextra = 1\n')
    (view,) = service.check_recipe(str(broken.parent))
    assert len(view.problems) > 3
    with pytest.raises(ConfigurationError, match="there is cutile-rs"):
        service.check_recipe("mine")

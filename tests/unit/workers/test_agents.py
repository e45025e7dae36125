"""What boxes are told of agents, whom their token is for, and when parked jobs go on."""

import os
import shutil
from pathlib import Path

import pytest

from farm.agents import AgentRole
from farm.data import config_folder
from farm.errors import ConfigurationError
from farm.job import Accept, Job, JobState, ParkReason, Run
from farm.ledger import BudgetReached, Budgets, Change, Ledger
from farm.models import load_models
from farm.orders import Parking
from farm.pipeline.stage import ExecutorKind, Stage
from farm.settings import Gateway, Settings
from workers import processes
from workers.agents import Agents, choice
from workers.gateway.place import process_file

RECIPE = config_folder() / "recipes" / "cutile-rs"
MODELS = load_models(config_folder() / "models.toml")
AGENT = dict.fromkeys(Stage, ExecutorKind.AGENT)
AUTO = dict.fromkeys(Stage, ExecutorKind.AUTO)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state=tmp_path, toolchain=tmp_path, gateway=Gateway(url="http://127.0.0.1:1"))


@pytest.fixture
def ledger(settings: Settings) -> Ledger:
    return Ledger(settings.ledger_url)


@pytest.fixture
def run(ledger: Ledger) -> Run:
    return ledger.submit(
        recipe="cutile-rs",
        repo="r",
        push_to=None,
        base="0" * 40,
        accept=Accept.CERTIFIED,
        attempts=2,
        ops=["relu"],
    )


@pytest.fixture
def job(ledger: Ledger, run: Run) -> Job:
    for state in (JobState.PREPARING, JobState.RUNNING):
        grant = ledger.acquire(f"{run.id}.relu", "test", ttl_s=10.0)
        assert grant is not None
        ledger.move(grant.job, state, Change())
    return ledger.jobs(run=run.id)[0]


def gateway_runs(settings: Settings) -> None:
    file = process_file(settings.state)
    file.parent.mkdir(exist_ok=True)
    processes.record(file, os.getpid())


def test_a_box_is_told_of_agents_where_a_gateway_runs_and_the_recipe_has_some(
    settings: Settings, ledger: Ledger, tmp_path: Path
) -> None:
    agents = Agents(settings, ledger)
    assert agents.order(AUTO, RECIPE) is None
    assert "farm up" in (agents.missing(AGENT, RECIPE) or "")
    assert agents.missing(AUTO, RECIPE) is None
    gateway_runs(settings)
    assert agents.missing(AGENT, RECIPE) is None
    order = agents.order(AUTO, RECIPE)
    assert order is not None
    assert set(order.choices) == set(Stage)
    assert all(chosen.model in {model.id for model in MODELS.models.values()} for chosen in order.choices.values())
    assert agents.order(dict.fromkeys(Stage, ExecutorKind.PROGRAM), RECIPE) is None
    assert (
        agents.order({**dict.fromkeys(Stage, ExecutorKind.PROGRAM), Stage.B: ExecutorKind.AUTO}, RECIPE)
        is not None
    )
    bare = tmp_path / "bare"
    shutil.copytree(RECIPE, bare, ignore=shutil.ignore_patterns("agents.toml"))
    assert agents.order(AUTO, bare) is None
    with pytest.raises(ConfigurationError, match="--executors program"):
        agents.missing(AGENT, bare)


def test_an_agent_thinks_as_its_table_says_or_as_usual() -> None:
    role = AgentRole(role="a.md", model="large", calls=3, minutes=2.0, tokens=1000)
    assert choice(role, MODELS).effort == "medium"
    hard = AgentRole(role="a.md", model="large", effort="high", calls=3, minutes=2.0, tokens=1000)
    assert (choice(hard, MODELS).effort, choice(hard, MODELS).calls) == ("high", 3)
    odd = AgentRole(role="a.md", model="large", effort="enormous", calls=3, minutes=2.0, tokens=1000)
    with pytest.raises(ConfigurationError, match="takes the efforts low, medium"):
        choice(odd, MODELS)
    with pytest.raises(ConfigurationError, match="no model 'tiny'"):
        choice(AgentRole(role="a.md", model="tiny", calls=1, minutes=1.0, tokens=1), MODELS)


def test_a_token_is_the_jobs_until_it_is_taken_or_another_is_given(
    settings: Settings, ledger: Ledger, job: Job, tmp_path: Path
) -> None:
    agents, file = Agents(settings, ledger), tmp_path / "token"
    agents.give_token(job, file)
    first = file.read_text()
    found = ledger.token_job(first)
    assert found is not None
    assert found.job == job.id
    assert file.stat().st_mode & 0o777 == 0o400
    agents.give_token(job, file)
    assert ledger.token_job(first) is None
    second = file.read_text()
    assert ledger.token_job(second) is not None
    agents.take_token(job)
    assert ledger.token_job(second) is None


def test_a_job_that_waits_for_money_goes_on_when_its_call_is_affordable(
    settings: Settings, ledger: Ledger, run: Run, job: Job, tmp_path: Path
) -> None:
    agents, file = Agents(settings, ledger), tmp_path / "parked.json"
    ledger.set_budget(run.id, 1_000)
    assert isinstance(ledger.reserve(job.id, 5_000, Budgets()), BudgetReached)
    agents.park(Parking(reason=ParkReason.BUDGET, summary="spent"), file)
    assert not agents.may_go_on(job, file)
    ledger.set_budget(run.id, 4_000)
    assert not agents.may_go_on(job, file), "more, and too little"
    ledger.set_budget(run.id, 5_000)
    assert agents.may_go_on(job, file)


def test_a_job_that_waits_for_the_api_does_not_go_on_while_nothing_answers(
    settings: Settings, ledger: Ledger, job: Job, tmp_path: Path
) -> None:
    agents, file = Agents(settings, ledger), tmp_path / "parked.json"
    agents.park(Parking(reason=ParkReason.MODEL, summary="overloaded", after_s=0.0), file)
    assert not agents.may_go_on(job, file)
    agents.park(Parking(reason=ParkReason.BUDGET, summary="spent"), file)
    assert "model" in file.read_text(), "what was written first stays"
    file.unlink()
    assert agents.may_go_on(job, file)

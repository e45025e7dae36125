"""What a play's outcome is held to: each fault of it is found, and a whole one has none."""

from dataclasses import replace
from typing import Any

import pytest

from drivers.scenarios.checks import problems
from drivers.scenarios.modelserver import Call
from drivers.scenarios.play import Act, Expect, Play
from drivers.scenarios.seen import Seen, SeenJob
from farm.data import config_folder
from farm.fault import Fault
from farm.job import JobState, ParkReason
from farm.ledger import Usage
from farm.models import load_models
from farm.pipeline.stage import Stage

PRICES = load_models(config_folder() / "models.toml")
SMALL = PRICES.named("small")
STAGES = ("A-1 agent PASS", "B-1 agent COMPILED")
PLAY = Play(
    name="play",
    what="x",
    recipe="plain-copy",
    texts=1,
    expect=Expect(state=JobState.ACCEPTED, stages=STAGES, calls=1, says="landed"),
    model={"name": "play"},
)
JOB = SeenJob(
    id="r.t01",
    op="t01",
    state=JobState.ACCEPTED,
    fault=None,
    summary="landed",
    branch="farm-certified/plain-copy/t01",
    attempts=1,
    stages=STAGES,
    parked=(),
    transitions=6,
    text="landed",
)


def call(**changes: Any) -> Call:
    usage = {
        "input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "cache_read_input_tokens": 30,
        "output_tokens": 40,
    }
    made = Call(
        number=1,
        at=0.0,
        bytes=9,
        sha256="b",
        key_sha256="k",
        key_in_body=False,
        headers=(),
        status=200,
        usage=usage,
    )
    return replace(made, **changes)


def row(**changes: Any) -> Usage:
    made = Usage(
        request="req_000001",
        run="r",
        job="r.t01",
        op="t01",
        attempt=1,
        stage=Stage.B,
        visit=1,
        step=1,
        model=SMALL.id,
        at=0.0,
        input_tokens=100,
        cache_write_5m_tokens=10,
        cache_write_1h_tokens=20,
        cache_read_tokens=30,
        output_tokens=40,
        cost_micro_usd=36,
        prices=PRICES.version,
    )
    return replace(made, **changes)


def seen(**changes: Any) -> Seen:
    made = Seen(
        jobs=(JOB,),
        calls=(call(),),
        results=("ok",),
        usage=(row(),),
        acts=0,
        files=None,
        branches=("farm-certified/plain-copy/t01",),
        boxes=1,
        leaks=(),
        seconds=1.0,
    )
    return replace(made, **changes)


def found(outcome: Seen, play: Play = PLAY) -> tuple[str, ...]:
    return problems(play, outcome, prices=PRICES, key_sha256="k")


def test_an_outcome_as_expected_has_no_problem() -> None:
    assert found(seen()) == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"jobs": (replace(JOB, state=JobState.FAILED, fault=Fault.KERNEL),)}, "is failed kernel instead of"),
        ({"jobs": (replace(JOB, stages=STAGES[:1]),)}, "instead of A-1 agent PASS > B-1 agent COMPILED"),
        ({"jobs": (replace(JOB, attempts=2),)}, "2 attempts instead of 1"),
        ({"jobs": (replace(JOB, parked=(ParkReason.MODEL,)),)}, "parked for model instead of"),
        ({"jobs": (replace(JOB, text="x"),)}, "says nothing of 'landed'"),
        ({"jobs": ()}, "instead of t01"),
        ({"boxes": 0}, "no box was there"),
        ({"acts": 1}, "1 of 0 acts"),
        ({"files": 16}, "16 files of the output contract instead of None"),
        ({"branches": ()}, "branches none were pushed"),
        ({"branches": ("farm-certified/plain-copy/t01", "farm/x/y")}, "farm/x/y were pushed"),
        ({"leaks": ("log/worker.log",)}, "the key is in log/worker.log"),
        ({"calls": (call(key_sha256="other"),)}, "without the gateway's key"),
        ({"calls": (call(key_in_body=True),)}, "in a request's body"),
        ({"usage": ()}, "req_000001 is not in the ledger"),
        ({"usage": ()}, "took 0 answers instead of 1"),
        ({"usage": (row(output_tokens=41, cost_micro_usd=37),)}, "the server reported"),
        ({"usage": (row(cost_micro_usd=35),)}, "costs 35 millionths"),
        ({"usage": (row(whole=False),)}, "whole says False"),
        ({"usage": (row(), row(request="req_000002"))}, "never answered"),
        ({"calls": (call(), call(number=2)), "usage": (row(), row(request="req_000002"))}, "paid for more than"),
        ({"calls": (call(), call(number=2, fault="cut_after 3", sha256="c"))}, "1 answers broke off"),
        ({"calls": (call(), call(number=2, status=429, usage={}, sha256="c"))}, "1 of 2 requests were refused"),
        ({"calls": (call(), call(number=2, status=400, usage={}, said="no visit"))}, "with 400: no visit"),
    ],
)  # fmt: skip
def test_each_fault_of_an_outcome_is_found(changes: dict[str, Any], says: str) -> None:
    assert any(says in problem for problem in found(seen(**changes))), found(seen(**changes))


def test_what_a_tool_must_never_have_said_is_found() -> None:
    play = PLAY.model_copy(update={"expect": PLAY.expect.model_copy(update={"never": ("sk-ant",)})})
    assert found(seen(), play) == ()
    assert found(seen(results=("key sk-ant-1",)), play) == ("a tool said 'sk-ant'",)


def test_without_a_model_nobody_may_be_asked() -> None:
    alone = PLAY.model_copy(update={"model": None})
    assert "1 requests, and nobody was to be asked" in found(seen(), alone)


def test_an_act_that_did_not_happen_is_found() -> None:
    play = PLAY.model_copy(update={"acts": (Act(when="parked", does="kill_box"),)})
    assert "0 of 1 acts happened" in found(seen(), play)

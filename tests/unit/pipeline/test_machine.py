"""The router is total, capped, ends, and never guesses."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.fault import Owner
from farm.pipeline.machine import Malformed, PipelineState, begin, step
from farm.pipeline.stage import FailClass, Reply, Stage, Verdict
from farm.pipeline.table import GOOD, End, Visit
from tests.builders import shipped_routes

TABLE = shipped_routes()
CAPS = TABLE.caps


def reply(verdict: Verdict, owner: Owner | None = None, fail_class: FailClass | None = None) -> Reply:
    return Reply(verdict=verdict, owner=owner, fault=None, fail_class=fail_class)


replies = st.one_of(
    st.builds(Malformed, reason=st.just("no verdict line")),
    st.builds(
        reply,
        st.sampled_from(Verdict),
        st.sampled_from([None, *Owner]),
        st.sampled_from([None, *FailClass]),
    ),
)


@given(st.lists(replies, min_size=40, max_size=40))
def test_every_route_ends_within_its_caps(script):
    state = begin(TABLE)
    for answer in script:
        transition = step(TABLE, state, answer)
        if transition.state is None:
            assert transition.end is not None
            return
        state = transition.state
        assert all(count <= CAPS[stage] for stage, count in state.visits.items())
    pytest.fail("the route did not end in 40 replies")


@given(st.sampled_from(Stage), st.integers(1, 2), st.sampled_from(Verdict))
def test_a_failure_without_an_owner_stops_the_run(stage, visit, verdict):
    if verdict in GOOD or verdict not in TABLE.verdicts[stage]:
        return
    transition = step(TABLE, PipelineState(stage=stage, visits={stage: visit}), reply(verdict))
    assert transition.end is End.STOP
    assert "without an owner" in transition.reason


def test_a_malformed_reply_is_repaired_once_by_the_same_stage_and_then_stops():
    state = begin(TABLE)
    first = step(TABLE, state, Malformed(reason="x"))
    assert first.state == replace(state, repaired=True)
    assert step(TABLE, first.state, Malformed(reason="x")).end is End.STOP


def test_the_table_has_no_mistakes():
    assert TABLE.check() == ()


def test_a_table_with_a_hole_names_it():
    key = next(iter(TABLE.rows))
    holed = replace(TABLE, rows={k: v for k, v in TABLE.rows.items() if k != key})
    assert any(f"{key}" in message for message in holed.check())


def test_a_stage_without_a_cap_is_named():
    holed = replace(TABLE, caps={s: n for s, n in CAPS.items() if s is not Stage.F})
    assert holed.check() == ("stage F has no cap",)


V, W = Verdict, Owner
ROUTES = [
    # stage, visits so far, reply, expected next stage or end
    (Stage.A, {Stage.A: 1}, reply(V.PASS), Stage.B),
    (Stage.A, {Stage.A: 1}, reply(V.FAIL_FIXABLE, W.ENV), End.STOP),
    (Stage.A, {Stage.A: 1}, reply(V.BLOCKED, W.KERNEL), End.STOP),
    (Stage.B, {Stage.B: 1}, reply(V.COMPILED), Stage.D),
    (Stage.B, {Stage.B: 1}, reply(V.FAIL_COMPILE, W.KERNEL), End.STOP),
    (Stage.B, {Stage.B: 2}, reply(V.FAIL_FIXABLE, W.KERNEL), End.STOP),
    (Stage.B, {Stage.B: 1}, reply(V.BLOCKED, W.ENV), End.STOP),
    (Stage.B, {Stage.B: 2, Stage.D: 1}, reply(V.COMPILED), Stage.D),
    (Stage.B, {Stage.B: 2, Stage.D: 2}, reply(V.COMPILED), End.DIAGNOSED),
    (Stage.D, {Stage.D: 1}, reply(V.ALL_PASS), Stage.E),
    (Stage.D, {Stage.D: 1}, reply(V.DEFERRED), Stage.E),
    (Stage.D, {Stage.D: 1}, reply(V.FAIL, W.HOST), Stage.D),
    (Stage.D, {Stage.D: 1}, reply(V.FAIL, W.KERNEL), Stage.C),
    (Stage.D, {Stage.D: 1}, reply(V.BLOCKED, W.HOST), Stage.D),
    (Stage.D, {Stage.D: 1}, reply(V.BLOCKED, W.KERNEL), Stage.C),
    (Stage.D, {Stage.D: 1}, reply(V.BLOCKED, W.ENV), End.STOP),
    (Stage.D, {Stage.D: 2}, reply(V.ALL_PASS), Stage.E),
    (Stage.D, {Stage.D: 2, Stage.E: 1}, reply(V.DEFERRED), Stage.E),
    (Stage.D, {Stage.D: 2}, reply(V.FAIL, W.KERNEL), Stage.C),
    (Stage.D, {Stage.D: 2, Stage.C: 1}, reply(V.FAIL, W.KERNEL), End.DIAGNOSED),
    (Stage.D, {Stage.D: 2}, reply(V.FAIL, W.HOST), End.DIAGNOSED),
    (Stage.E, {Stage.E: 1}, reply(V.DONE), End.COMPLETE),
    (Stage.E, {Stage.E: 1}, reply(V.DEFERRED), End.COMPLETE),
    (Stage.E, {Stage.E: 1}, reply(V.INVESTIGATE, None, FailClass.SHAPES), Stage.F),
    (Stage.E, {Stage.E: 1, Stage.F: 1}, reply(V.INVESTIGATE, None, FailClass.SHAPES), End.DIAGNOSED),
    (Stage.E, {Stage.E: 1}, reply(V.INVESTIGATE, None, FailClass.LARGE), Stage.C),
    (Stage.E, {Stage.E: 1}, reply(V.BLOCKED, W.KERNEL), Stage.C),
    (Stage.E, {Stage.E: 2}, reply(V.DONE), End.COMPLETE),
    (Stage.E, {Stage.E: 2}, reply(V.DEFERRED), End.COMPLETE),
    (Stage.E, {Stage.E: 2}, reply(V.INVESTIGATE, None, FailClass.SHAPES), End.DIAGNOSED),
    (Stage.E, {Stage.E: 2}, reply(V.BLOCKED, W.HOST), End.DIAGNOSED),
    (Stage.C, {Stage.C: 1, Stage.D: 1}, reply(V.FAIL_FIXABLE, W.HOST), Stage.D),
    (Stage.C, {Stage.C: 1, Stage.B: 1}, reply(V.FAIL_FIXABLE, W.KERNEL), Stage.B),
    (Stage.C, {Stage.C: 1, Stage.B: 2}, reply(V.FAIL_FIXABLE, W.KERNEL), End.DIAGNOSED),
    (Stage.C, {Stage.C: 1}, reply(V.PASS), End.DIAGNOSED),
    (Stage.C, {Stage.C: 1}, reply(V.PASS_WITH_NOTES), End.DIAGNOSED),
    (Stage.C, {Stage.C: 1}, reply(V.FAIL_COMPILER_BUG), End.DIAGNOSED),
    (Stage.C, {Stage.C: 1}, reply(V.BLOCKED, W.ENV), End.DIAGNOSED),
    (Stage.F, {Stage.F: 1, Stage.D: 1}, reply(V.FIXABLE, W.HOST), Stage.D),
    (Stage.F, {Stage.F: 1, Stage.B: 1}, reply(V.FIXABLE, W.KERNEL), Stage.B),
    (Stage.F, {Stage.F: 1}, reply(V.ALIGNED), End.DIAGNOSED),
    (Stage.F, {Stage.F: 1}, reply(V.BLOCKED, W.HOST), End.DIAGNOSED),
]


@pytest.mark.parametrize(("stage", "visits", "answer", "expected"), ROUTES)
def test_the_design_table_is_followed(stage, visits, answer, expected):
    transition = step(TABLE, PipelineState(stage=stage, visits=visits), answer)
    if isinstance(expected, End):
        assert transition.end is expected
    else:
        assert transition.state is not None
        assert transition.state.stage is expected
        assert transition.state.visits[expected] == visits.get(expected, 0) + 1


def test_the_routes_above_cover_every_stage_and_verdict():
    said = {(stage, answer.verdict) for stage, _, answer, _ in ROUTES}
    assert said == {(stage, verdict) for stage, verdicts in TABLE.verdicts.items() for verdict in verdicts}


def test_rows_speak_of_both_visits():
    assert {key.visit for key in TABLE.rows} == set(Visit)


def test_an_investigation_that_does_not_say_what_is_slow_is_malformed():
    transition = step(TABLE, PipelineState(stage=Stage.E, visits={Stage.E: 1}), reply(V.INVESTIGATE))
    assert transition.state is not None
    assert transition.state.repaired

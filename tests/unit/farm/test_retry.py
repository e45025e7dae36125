import pytest

from farm.fault import FINAL_AT_ONCE, TRANSIENT, USES_ATTEMPT, Fault
from farm.pipeline.stage import ExecutorKind, Stage
from farm.retry import After, Counts, decide, same_inputs

PROGRAM = dict.fromkeys(Stage, ExecutorKind.PROGRAM)


def counts(attempt=1, attempts=2, transients=0, transient_retries=3):
    return Counts(attempt=attempt, attempts=attempts, transients=transients, transient_retries=transient_retries)


@pytest.mark.parametrize("fault", sorted(Fault))
def test_every_fault_is_treated_as_its_set_says(fault):
    after = decide(fault, counts(), repeats=False).after
    expected = (
        After.ATTEMPT
        if fault in USES_ATTEMPT
        else After.FAIL
        if fault in FINAL_AT_ONCE
        else After.TRANSIENT
        if fault in TRANSIENT
        else After.PARK
    )
    assert after is expected


@pytest.mark.parametrize("fault", sorted(USES_ATTEMPT))
def test_the_last_attempt_is_followed_by_none(fault):
    assert decide(fault, counts(attempt=2), repeats=False).after is After.FAIL


@pytest.mark.parametrize("fault", sorted(USES_ATTEMPT))
def test_an_attempt_with_the_same_inputs_is_not_made(fault):
    decision = decide(fault, counts(attempts=5), repeats=True)
    assert (decision.after, decision.reason) == (
        After.FAIL,
        "another attempt would have identical inputs",
    )


@pytest.mark.parametrize("fault", sorted(TRANSIENT))
def test_transient_retries_have_a_cap_of_their_own_and_may_repeat(fault):
    assert decide(fault, counts(attempt=2, transients=2), repeats=True).after is After.TRANSIENT
    assert decide(fault, counts(transients=3), repeats=False).after is After.FAIL
    assert decide(fault, counts(transient_retries=0), repeats=False).after is After.FAIL


def test_programs_repeat_themselves_and_who_reads_the_trace_does_not():
    assert same_inputs(PROGRAM, PROGRAM)
    assert not same_inputs(PROGRAM, {**PROGRAM, Stage.B: ExecutorKind.AGENT})
    agent = {**PROGRAM, Stage.B: ExecutorKind.AGENT}
    assert not same_inputs(agent, agent)
    assert not same_inputs(agent, PROGRAM)

"""The transition table of jobs."""

from farm.job import FINAL, TRANSITIONS, JobState


def test_every_state_has_a_row_and_final_states_have_no_way_out():
    assert set(TRANSITIONS) == set(JobState)
    assert all(not TRANSITIONS[state] for state in FINAL)


def test_every_state_is_reached_from_queued():
    reached, frontier = set(), {JobState.QUEUED}
    while frontier:
        reached |= frontier
        frontier = {target for state in frontier for target in TRANSITIONS[state]} - reached
    assert reached == set(JobState)


def test_anything_unfinished_may_be_cancelled():
    assert all(JobState.CANCELLED in TRANSITIONS[state] for state in JobState if state not in FINAL)


def test_only_landing_leads_to_accepted():
    assert [s for s in JobState if JobState.ACCEPTED in TRANSITIONS[s]] == [JobState.LANDING]

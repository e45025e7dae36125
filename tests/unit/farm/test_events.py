import json
import typing

import pytest

from farm.codec import decode, encode
from farm.events import Event, Landed, Logged, Moved, Submitted, TransientRetry, line, once_key
from farm.fault import Fault
from farm.job import JobState

CLASSES = typing.get_args(Event)


def test_every_event_has_a_kind_of_its_own():
    kinds = [typing.get_args(typing.get_type_hints(cls)["kind"])[0] for cls in CLASSES]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize(
    "event",
    [
        Submitted(),
        Moved(source=JobState.QUEUED, to=JobState.PREPARING, fence=1, summary=None),
        TransientRetry(fault=Fault.ENV, summary="no compiler", used=2),
        Landed(branch="farm/x/relu", commit="c" * 40),
    ],
)
def test_an_event_comes_back_from_json_as_it_was(event):
    logged = Logged(seq=1, at=2.5, run="r", job="r.relu", attempt=1, event=event)
    text = line(logged)
    assert "\n" not in text
    assert decode(Logged, json.loads(text)) == logged
    assert decode(Event, encode(event)) == event


def test_transitions_may_repeat_and_what_a_box_says_may_not():
    assert once_key(Moved(source=JobState.QUEUED, to=JobState.PARKED, fence=1, summary=None)) is None
    assert once_key(Landed(branch="b", commit="c")) != once_key(Landed(branch="b", commit="d"))

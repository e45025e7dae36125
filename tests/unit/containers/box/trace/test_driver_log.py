"""Lines of the stand-in driver become launches and problems."""

import pytest

from containers.box.trace.driver_log import DriverLaunch, read_events

LAUNCH = (
    '{"event": "launch", "module": 0, "entry": "e", "grid": [4, 2, 1], "block": [1, 1, 1], "shared": 0, '
    '"params": [18446744073709551615, 3]}'
)


def test_a_launch_keeps_all_64_bits() -> None:
    events = read_events('{"event": "module", "module": 0}\n' + LAUNCH + "\n")
    assert events.launches == (DriverLaunch(module=0, entry="e", grid=(4, 2, 1), params=(2**64 - 1, 3)),)
    assert events.problems == ()


def test_a_missing_function_and_a_refusal_are_problems() -> None:
    text = '{"event": "missing", "function": "cuGraphLaunch"}\n{"event": "refused", "reason": "no header"}\n'
    assert read_events(text).problems == (
        "the stand-in driver does not implement cuGraphLaunch",
        "the stand-in driver refused: no header",
    )


def test_an_unknown_event_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="unknown driver event"):
        read_events('{"event": "surprise"}')

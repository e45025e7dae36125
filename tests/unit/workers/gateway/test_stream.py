import json

from hypothesis import given
from hypothesis import strategies as st

from drivers.scenarios import wire
from drivers.scenarios.scenario import Turn
from drivers.scenarios.tokens import Counted
from workers.gateway.stream import Reading

TURN = Turn.model_validate(
    {"thinking": "so\u2028", "text": "h\u00fc\r\n\n", "tools": [{"name": "bash", "input": {"command": "ls\n\n"}}]}
)
COUNTED = Counted(input=7, write_5m=11, write_1h=13, read=17)
ANSWER = wire.answer(TURN, number=1, model="m", counted=COUNTED, max_tokens=100)
EVENTS = list(wire.events(ANSWER))


def event(**data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


@given(st.lists(st.integers(min_value=1, max_value=60), min_size=1))
def test_pieces_of_any_size_are_read_as_the_same_message(sizes: list[int]) -> None:
    reading, data, at = Reading(), b"".join(EVENTS), 0
    while at < len(data):
        for size in sizes:
            reading.feed(data[at : at + size])
            at += size
    assert reading.whole
    assert not reading.garbled
    assert reading.message["content"] == list(ANSWER.blocks)
    assert reading.message["stop_reason"] == "tool_use"
    tokens = reading.tokens
    assert (tokens.input, tokens.cache_write_5m, tokens.cache_write_1h, tokens.cache_read) == (7, 11, 13, 17)
    assert tokens.output == ANSWER.usage["output_tokens"]


def test_a_stream_that_ends_anywhere_before_its_last_event_is_not_whole() -> None:
    for end in range(len(EVENTS)):
        reading = Reading()
        reading.feed(b"".join(EVENTS[:end]))
        assert not reading.whole
        assert reading.begun == (end > 0)


def test_writes_that_are_not_divided_are_the_usual_kind_and_absent_numbers_are_none() -> None:
    reading = Reading()
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 5, "output_tokens": 1}
    reading.feed(event(type="message_start", message={"id": "m", "usage": usage}))
    reading.feed(event(type="message_delta", delta={}, usage={"output_tokens": 9, "input_tokens": None}))
    tokens = reading.tokens
    assert (tokens.input, tokens.cache_write_5m, tokens.cache_write_1h, tokens.output) == (3, 5, 0, 9)


def test_what_is_no_event_is_noticed_and_unknown_events_are_not_minded() -> None:
    fine, broken = Reading(), Reading()
    fine.feed(event(type="something_new") + b": a comment\n\n")
    broken.feed(b"data: {\n\n")
    assert (fine.garbled, broken.garbled) == (False, True)

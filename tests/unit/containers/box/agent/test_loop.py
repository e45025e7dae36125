"""The loop: every way in which an answer stops, limits that end a visit, and a box that begins again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from containers.box.agent.caching import marked
from containers.box.agent.conversation import Answer, Conversation, Json
from containers.box.agent.loop import Refused, begin, begin_repair, result_block, talk, text_block
from containers.box.agent.trimming import trimmed
from farm.job import ParkReason
from farm.orders import AgentChoice, Parking
from farm.pipeline.machine import Malformed

PARKED = Parking(reason=ParkReason.MODEL, summary="overloaded")


class Texts:
    """Templates of one line."""

    def text(self, name: str, **values: object) -> str:
        return f"{name} {values}"


def choice(**changes: Any) -> AgentChoice:
    given: dict[str, Any] = {"calls": 5, "minutes": 10.0, "tokens": 10_000}
    return AgentChoice(model="m", max_tokens=100, thinking_budget=None, effort=None, **given | changes)


def says(text: str, reason: str = "end_turn") -> Answer:
    return Answer(content=[text_block(text)], stop_reason=reason, tokens=10, seconds=0.1)


def uses(number: int, reason: str = "tool_use") -> Answer:
    block: Json = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {}}
    return Answer(content=[block], stop_reason=reason, tokens=10, seconds=0.1)


class Model:
    """Gives answers in order, and remembers what it was asked."""

    def __init__(self, *answers: Answer | Parking | Refused) -> None:
        self._answers = list(answers)
        self.asked: list[list[Json]] = []
        self.ran = 0

    def ask(self, conversation: Conversation) -> Answer | Parking | Refused:
        self.asked.append(conversation.messages())
        return self._answers.pop(0)

    def act(self, _: Conversation, answer: Answer) -> list[Json]:
        self.ran += len(answer.calls)
        return [result_block(call, "done") for call in answer.calls]


def play(folder: Path, model: Model, **changes: Any) -> Any:
    conversation = Conversation(folder)
    begin(conversation, choice(**changes), Texts(), "begin")
    return talk(conversation, choice(**changes), model.ask, model.act, Texts())


def last_texts(messages: Sequence[Json]) -> str:
    return " ".join(block.get("text", block.get("content", "")) for block in messages[-1]["content"])


def test_tools_are_run_until_there_is_a_reply(tmp_path: Path) -> None:
    model = Model(uses(1), uses(2), says("VERDICT"))
    assert play(tmp_path, model) == "VERDICT"
    assert model.ran == 2
    assert [message["role"] for message in model.asked[-1]] == ["user", "assistant"] * 2 + ["user"]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_a_cut_answer_runs_no_tool_and_is_said_to_be_cut(tmp_path: Path, reason: str) -> None:
    model = Model(uses(1, reason), says("VERDICT"))
    assert play(tmp_path, model) == "VERDICT"
    assert model.ran == 0
    assert "not run: the reply was cut" in last_texts(model.asked[-1])
    assert "cut.md.j2" in last_texts(model.asked[-1])


def test_a_pause_is_sent_back_as_it_is(tmp_path: Path) -> None:
    model = Model(says("half", "pause_turn"), says("VERDICT"))
    assert play(tmp_path, model) == "VERDICT"
    assert model.asked[-1][-1] == {"role": "assistant", "content": [text_block("half")]}


def test_a_refusal_and_a_parking_end_the_visit(tmp_path: Path) -> None:
    refused = play(tmp_path / "a", Model(says("no", "refusal")))
    assert isinstance(refused, Refused)
    assert refused.by_model
    assert play(tmp_path / "b", Model(PARKED)) == PARKED


def test_the_last_call_is_announced_and_one_that_does_not_reply_then_is_malformed(tmp_path: Path) -> None:
    model = Model(*(uses(number) for number in range(5)))
    ended = play(tmp_path, model, calls=3)
    assert isinstance(ended, Malformed)
    assert "3 calls" in ended.reason
    assert len(model.asked) == 3
    assert "last.md.j2" in last_texts(model.asked[-1])
    assert model.ran == 2


def test_tokens_end_a_visit_before_they_are_over(tmp_path: Path) -> None:
    model = Model(*(uses(number) for number in range(9)))
    assert isinstance(play(tmp_path, model, calls=99, tokens=50), Malformed)
    assert len(model.asked) * 10 <= 50


def test_a_box_that_begins_again_asks_what_was_not_answered_and_nothing_else(tmp_path: Path) -> None:
    first = Model(uses(1), PARKED)
    assert play(tmp_path, first) == PARKED
    second = Model(says("VERDICT"))
    assert play(tmp_path, second) == "VERDICT"
    assert second.asked == [first.asked[-1]]
    assert second.ran == 0


def test_a_repair_continues_the_conversation_by_one_call(tmp_path: Path) -> None:
    play(tmp_path / "B-1", Model(says("prose")))
    before = Conversation(tmp_path / "B-1")
    repair = Conversation(tmp_path / "B-1-repair", before)
    begin_repair(repair, before, "say it again")
    model = Model(uses(1))
    ended = talk(repair, choice(calls=1), model.ask, model.act, Texts())
    assert isinstance(ended, Malformed)
    assert last_texts(model.asked[0]) == "say it again"
    assert len(model.asked[0]) == 3
    assert repair.spent.calls == 2


def test_four_markers_at_most_and_the_request_itself_is_unchanged(tmp_path: Path) -> None:
    model = Model(uses(1), uses(2), uses(3), says("VERDICT"))
    play(tmp_path, model)
    request = {"system": [text_block("system")], "messages": model.asked[-1]}
    with_markers = marked(request)
    places = [
        place
        for place, message in enumerate(with_markers["messages"])
        if "cache_control" in message["content"][-1]
    ]
    assert places == [0, 4, 6]
    assert "cache_control" in with_markers["system"][-1]
    assert "cache_control" not in str(request)


def test_old_output_is_dropped_with_a_note_and_what_is_kept_stays() -> None:
    messages: list[Json] = [{"role": "user", "content": [text_block("begin")]}]
    for number in range(6):
        call: Json = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"keep": number == 0}}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result_block(call, str(number) * 1000)]})
    left = trimmed(messages, lambda call: call["input"]["keep"], most=3000, left=1500)
    shown = [
        message["content"][0]["content"][:30] for message in left if message["content"][0]["type"] == "tool_result"
    ]
    assert shown[0] == "0" * 30
    assert shown[-1] == "5" * 30
    assert shown[1].startswith("[1000 characters of output")
    assert trimmed(messages[:5], lambda call: False, most=3000, left=1500) == messages[:5]

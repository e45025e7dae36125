"""The model server, asked through the unchanged SDK."""

import json
import threading
from pathlib import Path
from typing import Any

import anthropic
import pytest

from drivers.scenarios.modelserver import serving
from drivers.scenarios.scenario import Scenario, load

FACTS = "| fact | value |\n|---|---|\n| stage | B |\n| visit | 1 |\n| attempt | 1 |\n| op | relu |\n"
TOOL = {"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}


def scenario(**values: Any) -> Scenario:
    return Scenario.model_validate({"name": "test", **values})


def one_turn(**turn: Any) -> list[dict[str, Any]]:
    return [{"turns": [turn]}]


def client(url: str, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, **{"api_key": "key", "max_retries": 0} | options)


def ask(url: str, talk: list[Any] | None = None, *, retries: int = 0, **options: Any) -> anthropic.types.Message:
    talk = talk or [{"role": "user", "content": FACTS}]
    asked = {"model": "some-model", "max_tokens": 1000, "messages": talk}
    with client(url, max_retries=retries) as sdk, sdk.messages.stream(**asked | options) as stream:
        return stream.get_final_message()


def test_thinking_text_and_tool_calls_arrive_as_they_were_written() -> None:
    turn = {
        "thinking": "It is elementwise \u2013 simple.",
        "text": "Writing {{op}}.",
        "tools": [{"name": "bash", "input": {"command": "echo ü | tr a b", "n": 3}}, {"name": "bash"}],
    }
    with serving(scenario(visits=[{"stage": "B", "turns": [turn]}])) as (url, server):
        message = ask(url, tools=[TOOL])
    thinking, text, first, second = message.content
    assert thinking.type == "thinking"
    assert thinking.thinking == turn["thinking"]
    assert thinking.signature
    assert text.type == "text"
    assert text.text == "Writing relu."
    assert first.type == "tool_use"
    assert first.input == {"command": "echo ü | tr a b", "n": 3}
    assert second.type == "tool_use"
    assert second.input == {}
    assert second.id != first.id
    assert message.stop_reason == "tool_use"
    assert server.calls[0].facts == {"stage": "B", "visit": "1", "attempt": "1", "op": "relu"}


def test_the_turn_follows_from_the_assistant_messages_alone() -> None:
    turns = [{"tools": [{"name": "bash", "input": {}}]}, {"text": "VERDICT: COMPILED"}]
    with serving(scenario(visits=[{"stage": "B", "turns": turns}])) as (url, _):
        first = ask(url, tools=[TOOL])
        result = {"type": "tool_result", "tool_use_id": first.content[0].id, "content": "ok"}
        talk = [
            {"role": "user", "content": FACTS},
            {"role": "assistant", "content": [first.content[0].to_dict()]},
            {"role": "user", "content": [result]},
        ]
        assert ask(url, talk, tools=[TOOL]).content[0].text == "VERDICT: COMPILED"
        with pytest.raises(anthropic.BadRequestError, match="without `tool_result`"):
            ask(url, [*talk[:2], {"role": "user", "content": "and now?"}])
        with pytest.raises(anthropic.BadRequestError, match="asks for turn 3"):
            ask(url, [*talk, {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}])


def test_an_answer_without_streaming_is_the_same_message() -> None:
    with serving(scenario(visits=one_turn(text="hello"))) as (url, _), client(url) as sdk:
        message = sdk.messages.create(model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}])
    assert message.content[0].text == "hello"
    assert message.usage.output_tokens > 0


def test_a_moving_marker_reads_what_the_last_request_wrote() -> None:
    system = [{"type": "text", "text": "rules " * 2000, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    marked = [{"type": "text", "text": FACTS, "cache_control": {"type": "ephemeral"}}]
    with serving(scenario(visits=[{"turns": [{"text": "a"}, {"text": "b"}]}])) as (url, _):
        first = ask(url, [{"role": "user", "content": marked}], system=system).usage
        talk = [
            {"role": "user", "content": FACTS},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": [marked[0] | {"text": "go on"}]},
        ]
        second = ask(url, talk, system=system).usage
    assert first.cache_creation is not None
    assert (
        first.cache_creation.ephemeral_1h_input_tokens > 1024 > first.cache_creation.ephemeral_5m_input_tokens > 0
    )
    assert first.cache_read_input_tokens == 0
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert 0 < second.cache_creation_input_tokens < 60
    assert second.input_tokens == 0


def test_nothing_short_is_cached_and_five_markers_are_refused() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    block = {"type": "text", "text": "x", **mark}
    with serving(scenario(visits=one_turn(text="a"))) as (url, _):
        usage = ask(url, [{"role": "user", "content": [block]}]).usage
        assert usage.cache_creation_input_tokens == 0
        assert usage.input_tokens > 0
        with pytest.raises(anthropic.BadRequestError, match="maximum of 4"):
            ask(url, [{"role": "user", "content": [block] * 5}])


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (402, anthropic.APIStatusError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.APIStatusError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (504, anthropic.InternalServerError),
        (529, anthropic.InternalServerError),
    ],
)
def test_each_documented_error_is_the_sdks_own(status: int, kind: type[anthropic.APIStatusError]) -> None:
    fault = {"status": status, "should_retry": False}
    with serving(scenario(faults=[fault], visits=one_turn(text="a"))) as (url, _):
        with pytest.raises(kind) as caught:
            ask(url, retries=2)
        assert caught.value.status_code == status
        assert caught.value.request_id == "req_000001"
        assert ask(url).content[0].text == "a"


def test_the_sdk_retries_after_the_time_that_it_is_told() -> None:
    fault = {"status": 429, "retry_after_s": 1, "times": 1}
    with serving(scenario(faults=[fault], visits=one_turn(text="a"))) as (url, server):
        assert ask(url, retries=1).content[0].text == "a"
    assert [call.status for call in server.calls] == [429, 200]
    assert server.calls[1].at - server.calls[0].at >= 1.0


def test_a_cut_stream_and_an_error_in_its_middle_are_errors_once() -> None:
    faults = [{"cut_after": 3}, {"error_after": 4}]
    with serving(scenario(visits=one_turn(text="a long text", faults=faults))) as (url, server):
        with pytest.raises(Exception, match=r"(?i)closed|incomplete|disconnect|reset|connection"):
            ask(url)
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            ask(url)
        assert ask(url).content[0].text == "a long text"
    assert [call.fault for call in server.calls] == ["cut_after 3", "error_after 4", None]


def test_one_request_more_than_may_run_at_once_is_sent_away() -> None:
    with serving(scenario(simultaneous=2, visits=one_turn(text="a", delay_s=0.5))) as (url, server):
        statuses: list[int] = []
        waits: list[str] = []

        def each() -> None:
            try:
                ask(url)
                statuses.append(200)
            except anthropic.RateLimitError as error:
                statuses.append(429)
                waits.append(error.response.headers["retry-after"])

        threads = [threading.Thread(target=each) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(statuses) == [200, 200, 429]
    assert waits == ["1"]
    assert sum(call.fault == "simultaneous" for call in server.calls) == 1


def test_what_it_saw_is_written_without_the_key(tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    (tmp_path / "kernel.rs").write_text("fn main() {}\n")
    file = tmp_path / "s.toml"
    tools = '[{name = "write", input = {text = "{{file:kernel.rs}}"}}]'
    file.write_text(f"[[visits]]\n[[visits.turns]]\ntools = {tools}\n")
    with serving(load(file), record=record) as (url, _), client(url, api_key="sk-ant-canary") as sdk:
        message = sdk.messages.create(model="m", max_tokens=99, messages=[{"role": "user", "content": FACTS}])
    assert message.content[0].input == {"text": "fn main() {}\n"}
    (line,) = record.read_text().splitlines()
    assert json.loads(line)["status"] == 200
    assert json.loads(line)["usage"]["output_tokens"] > 0
    assert "canary" not in line


def test_a_longer_text_than_allowed_stops_for_that_reason() -> None:
    with serving(scenario(visits=one_turn(text="x" * 400))) as (url, _):
        message = ask(url, max_tokens=5)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 5

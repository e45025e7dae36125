"""The loop: ask, do what the model asks for, save, until it replies. Everything else is beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from containers.box.agent import limits
from containers.box.agent.conversation import Answer, Conversation, Json, Said
from farm.agents import CUT, LAST
from farm.orders import AgentChoice, Parking
from farm.pipeline.machine import Malformed


@dataclass(frozen=True, kw_only=True)
class Refused:
    """No answer will ever come to this: the gateway or the model says no."""

    summary: str  #: one sentence
    by_model: bool = False  #: the model declines; else the request cannot be carried out


#: A request without an answer yet; what comes of it.
Ask = Callable[[Conversation], Answer | Parking | Refused]
#: Runs the tool calls of the conversation's last answer; their results, in order.
Act = Callable[[Conversation, Answer], list[Json]]


class Texts(Protocol):
    """Rendered templates; see `prompts.Prompts`."""

    def text(self, name: str, **values: object) -> str:
        """A template's text."""


def talk(
    conversation: Conversation, choice: AgentChoice, ask: Ask, act: Act, texts: Texts
) -> str | Malformed | Parking | Refused:
    """The text of the model's reply, or why there is none. What is saved already is not done again."""
    while True:
        answer = conversation.unfollowed
        if answer is None:
            said = ask(conversation)
            if not isinstance(said, Answer):
                return said
            conversation.add(said)
            answer = said
        content: list[Json] = []
        match answer.stop_reason:
            case "refusal":
                return Refused(summary="the model declines to go on", by_model=True)
            case "max_tokens" | "model_context_window_exceeded":
                cut = texts.text(CUT, max_tokens=choice.max_tokens)
                content = [*not_run(answer, "the reply was cut"), text_block(cut)]
            case "pause_turn" if not answer.calls:
                pass  # what it has said so far is sent back, and it goes on
            case _ if not answer.calls:
                return answer.text
            case _:
                content = [] if conversation.told_last else act(conversation, answer)
        if conversation.told_last:
            return Malformed(
                reason=f"the limits of the visit are reached ({choice.calls} calls), and it is no reply"
            )
        why = limits.last(choice, conversation.spent)
        if why is not None:
            content.append(text_block(texts.text(LAST, reason=why)))
        conversation.add(Said(content=content, last=why is not None))


def begin(conversation: Conversation, choice: AgentChoice, texts: Texts, text: str) -> None:
    """The first message, unless it was said before a box was killed."""
    if not conversation.begun:
        why = limits.last(choice, conversation.spent)
        content = [text_block(text)] + ([text_block(texts.text(LAST, reason=why))] if why else [])
        conversation.add(Said(content=content, last=why is not None))


def begin_repair(conversation: Conversation, before: Conversation, text: str) -> None:
    """The message that asks to repair a reply: one call, whatever the limits say."""
    if not conversation.begun:
        answer = before.unfollowed
        unanswered = not_run(answer, "there is no further call") if answer is not None else []
        conversation.add(Said(content=[*unanswered, text_block(text)], last=True))


def not_run(answer: Answer, why: str) -> list[Json]:
    """Results of calls that were not carried out: the API wants one for each."""
    return [result_block(call, f"not run: {why}", is_error=True) for call in answer.calls]


def text_block(text: str) -> Json:
    """Text as a content block."""
    return {"type": "text", "text": text}


def result_block(call: Json, text: str, *, is_error: bool = False) -> Json:
    """What a tool call gave, as a content block."""
    return {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": text,
        **({"is_error": True} if is_error else {}),
    }

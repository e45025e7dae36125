"""Which old tool output a request leaves out. Pure: the same messages give the same cut, and cuts only move on.

What was sent once is sent again unchanged, or the cache of prompts is worth nothing. So nothing is dropped until
there is too much, and then so much at once that many turns follow before the next cut.
"""

from collections.abc import Callable

from containers.box.agent.conversation import Json

#: Characters of tool output that may stand in a request, and what a cut leaves of them.
MOST, LEFT = 240_000, 80_000
NOTE = "[{characters} characters of output were dropped here; ask again if you need them]"
#: Shorter output is not worth its note.
SHORT = 400


def trimmed(
    messages: list[Json], keeps: Callable[[Json], bool], *, most: int = MOST, left: int = LEFT
) -> list[Json]:
    """The messages without old tool output; `keeps` says of a tool call that its output stays."""
    kept = {
        block["id"]
        for message in messages
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "tool_use" and keeps(block)
    }
    sizes = [_droppable(message, kept) for message in messages]
    cut = 0  # outputs before this message are dropped
    for place in range(len(messages)):
        if sum(sizes[cut : place + 1]) <= most:
            continue
        # The newest turn stays whole, however long it is.
        while cut < place and sum(sizes[cut : place + 1]) > left:
            cut += 1
    return [_without(message, kept) if place < cut else message for place, message in enumerate(messages)]


def _droppable(message: Json, kept: set[str]) -> int:
    return sum(len(block["content"]) for block in message["content"] if _drops(block, kept))


def _drops(block: Json, kept: set[str]) -> bool:
    return block["type"] == "tool_result" and block["tool_use_id"] not in kept and len(block["content"]) > SHORT


def _without(message: Json, kept: set[str]) -> Json:
    content = [
        {**block, "content": NOTE.format(characters=len(block["content"]))} if _drops(block, kept) else block
        for block in message["content"]
    ]
    return {**message, "content": content}

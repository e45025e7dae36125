"""Where `cache_control` stands in a request. Pure: the same conversation gives the same markers.

At most four, from the part that most requests share to the part that one has: the system text (and with it the
tools, which come before it), the same for all jobs of a stage and kept an hour; the start message; the user turn
before the last, where the request before this one ended; the last user turn, where the next one will begin.
The fourth is needed when tools answer with so many blocks that the API does not look back far enough.
"""

from containers.box.agent.conversation import Json

HOUR: Json = {"type": "ephemeral", "ttl": "1h"}
MINUTES: Json = {"type": "ephemeral"}


def marked(request: Json) -> Json:
    """The request with its markers; nothing of the given one is changed."""
    messages = list(request["messages"])
    turns = [place for place, message in enumerate(messages) if message["role"] == "user"]
    for place in {*turns[:1], *turns[-2:]}:
        messages[place] = {**messages[place], "content": _on_last(messages[place]["content"], MINUTES)}
    return {**request, "system": _on_last(request["system"], HOUR), "messages": messages}


def _on_last(blocks: list[Json], marker: Json) -> list[Json]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": marker}]

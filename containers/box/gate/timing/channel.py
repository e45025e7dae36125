"""Messages between parent and child: a line of JSON each, on pipes of their own (a tree's code prints freely)."""

import json
import os
from typing import Any


class Channel:
    """The child's end."""

    def __init__(self, commands: int, replies: int) -> None:
        for descriptor in (commands, replies):
            os.set_inheritable(descriptor, False)
        self._commands = os.fdopen(commands, encoding="utf-8")
        self._replies = os.fdopen(replies, "w", encoding="utf-8")
        self._dumps, self._loads = json.dumps, json.loads

    def receive(self) -> dict[str, Any]:
        """The next command; `end` when the parent is gone."""
        line = self._commands.readline()
        return dict(self._loads(line)) if line else {"do": "end"}

    def send(self, event: str, **fields: Any) -> None:
        """Tell the parent."""
        self._replies.write(self._dumps({"event": event, **fields}) + "\n")
        self._replies.flush()

"""What pytest says about a file that cannot be collected, as one line with the place."""

import os
import re

_PLACE = re.compile(r'^(?:E\s+)?File "([^"]+)", line (\d+)|^(\S+\.py):(\d+): in ', re.MULTILINE)
_CHARACTERS = 300


def in_words(text: str, root: str) -> str:
    """The last place that a report names, relative to `root` where it lies there, and its last line."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    words = re.sub(r"^E\s+", "", lines[-1]) if lines else "unknown"
    places = [(a or c, b or d) for a, b, c, d in _PLACE.findall(text)]
    if not places:
        return words[:_CHARACTERS]
    file, line = places[-1]
    inside = os.path.relpath(file, root) if os.path.isabs(file) else file
    return f"{file if inside.startswith('..') else inside}:{line}: {words}"[:_CHARACTERS]

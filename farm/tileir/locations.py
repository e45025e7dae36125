"""The `#loc` table at the end of a text with debug information."""

import re

from farm.tileir.span import Source

_ALIAS = re.compile(r"(?m)^#(\w+) = ([^\n]*)$")
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)$')
_REFERENCE = re.compile(r"#cuda_tile\.di_loc<\s*#?(loc\w*)")
_CALLSITE = re.compile(r"callsite\((.+?) at (.+)\)$")


class Locations:
    """Resolves location aliases lazily; an alias that is unknown has no source."""

    def __init__(self, text: str) -> None:
        self._text = dict(_ALIAS.findall(text)) if "\n#" in text else {}
        self._found: dict[str, Source | None] = {}

    def alias(self, name: str) -> Source | None:
        """The place that `#name` stands for."""
        if name not in self._found:
            self._found[name] = None  # a location that mentions itself ends here
            self._found[name] = self.read(self._text.get(name, ""))
        return self._found[name]

    def read(self, text: str) -> Source | None:
        """The place that a location's text stands for; None for `unknown` and forms without a file."""
        text = text.strip().removeprefix("loc")
        text = text[1:-1] if text.startswith("(") else text
        if text.startswith("#") and text[1:].isidentifier():
            return self.alias(text[1:])
        call = _CALLSITE.match(text)
        if call is not None:
            return self._called(self.read(call.group(1)), self.read(call.group(2)))
        reference = _REFERENCE.match(text)
        if reference is not None:
            return self.alias(reference.group(1))
        found = _FILE.match(text)
        return found and Source(file=found.group(1), line=int(found.group(2)), column=int(found.group(3)))

    @staticmethod
    def _called(callee: Source | None, caller: Source | None) -> Source | None:
        if callee is None or caller is None:
            return callee or caller
        outer = callee.caller
        chain = caller if outer is None else Locations._called(outer, caller)
        return Source(file=callee.file, line=callee.line, column=callee.column, caller=chain)

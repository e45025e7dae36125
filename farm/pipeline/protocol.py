"""How an agent's last text is read. Pure and total: any text gives a claim, or says why it gives none.

    VERDICT: FAIL_FIXABLE            the first such line counts
    OWNER: kernel                    for failures
    CLASS: shapes                    for INVESTIGATE
    SUMMARY: one sentence            may be missing
    VALIDATOR_OUTPUT
    kernel: 1                        each validator that the agent ran, and its exit code
    END_VALIDATOR_OUTPUT

What it says steers the route only after the orchestrator has run the validators itself.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from farm.fault import Owner
from farm.pipeline.machine import Malformed
from farm.pipeline.stage import FailClass, Verdict
from farm.pipeline.table import GOOD

BEGIN, END = "VALIDATOR_OUTPUT", "END_VALIDATOR_OUTPUT"
#: Longest summary that is kept, characters.
SUMMARY_CHARACTERS = 400

_FIELD = re.compile(r"^(VERDICT|OWNER|CLASS|SUMMARY):[ \t]*(.*?)[ \t]*$")
_EXIT = re.compile(r"^([A-Za-z0-9_.-]+):[ \t]*(-?[0-9]{1,4})$")

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What an agent says about its stage. A claim: nothing of it is known yet."""

    verdict: Verdict
    owner: Owner | None  #: set for every failure
    fail_class: FailClass | None  #: set for INVESTIGATE
    summary: str  #: one line, may be empty
    exits: tuple[tuple[str, int], ...]  #: validators and the exit codes that it saw


def parse_reply(text: str, allowed: Collection[Verdict]) -> Claim | Malformed:
    """The claim of an agent's last text, for a stage with these verdicts."""
    fields: dict[str, str] = {}
    exits: list[tuple[str, int]] = []
    inside = blocks = False
    for line in text.splitlines():
        stripped = line.strip()
        if inside:
            if stripped == END:
                inside = False
            elif found := _EXIT.match(stripped):
                exits.append((found[1], int(found[2])))
            elif stripped:
                return _bad(f"{stripped[:80]!r} in {BEGIN} is not `<name>: <exit code>`")
        elif stripped == BEGIN:
            if blocks:
                return _bad(f"it has more than one {BEGIN} block")
            inside = blocks = True
        elif found := _FIELD.match(stripped):
            fields.setdefault(found[1], found[2])
    if inside:
        return _bad(f"its {BEGIN} block has no {END} line")
    if "VERDICT" not in fields:
        return _bad("it has no line `VERDICT: <word>`")
    verdict = _word(fields["VERDICT"], Verdict)
    if verdict is None or verdict not in allowed:
        return _bad(f"VERDICT {fields['VERDICT'][:80]!r} is none of {', '.join(sorted(allowed))}")
    if not blocks:
        return _bad(f"it has no {BEGIN} block")
    owner = _word(fields.get("OWNER", ""), Owner)
    if verdict not in GOOD and owner is None:
        return _bad(f"{verdict} is a failure and needs a line `OWNER: {'|'.join(Owner)}`")
    fail_class = _word(fields.get("CLASS", ""), FailClass)
    if verdict is Verdict.INVESTIGATE and fail_class is None:
        return _bad(f"{verdict} needs a line `CLASS: {'|'.join(FailClass)}`")
    return Claim(
        verdict=verdict,
        owner=None if verdict in GOOD else owner,
        fail_class=fail_class if verdict is Verdict.INVESTIGATE else None,
        summary=fields.get("SUMMARY", "")[:SUMMARY_CHARACTERS],
        exits=tuple(exits),
    )


def _word(text: str, kind: type[Word]) -> Word | None:
    return next((member for member in kind if member.value == text), None)


def _bad(reason: str) -> Malformed:
    return Malformed(reason=reason)

"""What facts of the target's process say: what it imported, patched and left running. Pure."""

from collections.abc import Iterator

from farm.gates import Ruling
from farm.measured.model import Finding
from farm.measured.records import Collected

#: Facts that must be there and hold nothing, with what they say when they hold something.
CLEAN = {
    "source_dsl": "the target's process imports the source's language",
    "patched": "functions of the harness or of torch were replaced",
    "threads": "threads were left running",
}


def process_findings(collected: Collected | None) -> Iterator[Finding]:
    """Judge the facts of the process in which the target's rows ran."""
    if collected is None:
        yield Finding(ruling=Ruling.INFRA, reason="nothing is known of the target's process")
        return
    for name, meaning in CLEAN.items():
        value = collected.process.get(name)
        if value is None:
            yield Finding(ruling=Ruling.INFRA, reason=f"the target's process: no fact {name}")
        elif value:
            yield Finding(ruling=Ruling.FAIL, reason=f"{meaning}: {value}")

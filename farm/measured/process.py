"""What facts of the target's processes say: what they imported, replaced and left running. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from farm.gates import Ruling
from farm.measured.model import Finding
from farm.measured.records import Collected


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A fact that must be known of the target's processes and must name nothing."""

    fact: str
    meaning: str  #: what is wrong when it names something
    beside_source: bool = False  #: what the source's processes name as well is the repository's own doing
    needed: bool = True  #: that it is not known is INFRA


#: Names in a fact are divided by commas, or by semicolons between processes; 0 names nothing.
RULES = (
    Rule(fact="source_dsl", meaning="the source's language in the target:"),
    Rule(fact="patched", meaning="functions that judge or time were replaced", beside_source=True),
    Rule(fact="result_types", meaning="results are no plain tensors", beside_source=True),
    Rule(fact="threads", meaning="threads were left running", beside_source=True),
    Rule(fact="left_processes", meaning="processes were left running", beside_source=True, needed=False),
    Rule(fact="tree_libraries", meaning="the target loads libraries that are not its own", needed=False),
)


def process_findings(target: Collected | None, source: Collected | None) -> Iterator[Finding]:
    """Judge the facts of the processes in which the target's rows ran."""
    if target is None:
        yield Finding(ruling=Ruling.INFRA, reason="nothing is known of the target's process")
        return
    for rule in RULES:
        value = target.process.get(rule.fact)
        if value is None and not rule.needed:
            continue
        if value is None:
            yield Finding(ruling=Ruling.INFRA, reason=f"the target's process: {rule.fact} is not known")
            continue
        common = _names(source.process.get(rule.fact, "")) if rule.beside_source and source is not None else set()
        found = sorted(_names(value) - common)
        if found:
            yield Finding(ruling=Ruling.FAIL, reason=f"{rule.meaning} {', '.join(found)}")


def _names(value: str) -> set[str]:
    return {name for name in re.split(r"\s*[,;]\s*", value.strip()) if name not in ("", "0")}

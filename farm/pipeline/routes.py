"""A recipe's routes.toml: the router's rows and verdict sets, as a person writes them.

[verdicts]
A = ["PASS", "BLOCKED"]

[[row]]
after = "A"
says = ["BLOCKED"]
owner = ["host", "kernel"]   # for failures; without it, every owner
class = ["shapes"]           # for INVESTIGATE; without it, every class
visit = "first"              # or "later"; without it, both
next = "B"                   # a stage, or complete, diagnosed, stop
"""

import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from farm.errors import ConfigurationError
from farm.fault import Owner
from farm.pipeline.stage import FailClass, Stage, Verdict
from farm.pipeline.table import GOOD, End, Key, RouteTable, Target, Visit

FILE = "routes.toml"
_FIELDS = frozenset({"after", "says", "owner", "class", "visit", "next"})


def read_routes(text: str, caps: Mapping[Stage, int]) -> RouteTable:
    """The table that the text describes, with a recipe's caps. Raises ConfigurationError listing all mistakes."""
    table, problems = parse_routes(text, caps)
    if table is None or problems:
        raise ConfigurationError("\n".join(f"{FILE}: {problem}" for problem in problems))
    return table


def parse_routes(text: str, caps: Mapping[Stage, int]) -> tuple[RouteTable | None, tuple[str, ...]]:
    """The table, where the text is one, and every mistake of it."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, (f"not TOML: {error}",)
    problems = [f"{name}: no such table" for name in data if name not in ("start", "verdicts", "row")]
    verdicts: dict[Stage, frozenset[Verdict]] = {}
    for name, words in dict(data.get("verdicts", {})).items():
        for stage in _known([name], Stage, f"verdicts.{name}", problems):
            verdicts[stage] = frozenset(_known(words, Verdict, f"verdicts.{name}", problems))
    rows: dict[Key, Target] = {}
    for number, row in enumerate(data.get("row", ()), start=1):
        target = _target(row, f"row {number}", problems)
        for key in _keys(row, f"row {number}", problems):
            if key in rows:
                problems.append(f"row {number}: {key} has a row already")
            if target is not None:
                rows[key] = target
    start = next(_known([data.get("start", "A")], Stage, "start", problems), Stage.A)
    table = RouteTable(rows=rows, verdicts=verdicts, caps=caps, start=start)
    # A row that cannot be read would be reported a second time, as one that is missing.
    return table, tuple(problems) or table.check()


def _keys(row: Mapping[str, Any], where: str, problems: list[str]) -> Iterator[Key]:
    problems += [f"{where}: {name} is no field of a row" for name in row if name not in _FIELDS]
    visits = tuple(_known([row["visit"]] if "visit" in row else Visit, Visit, f"{where}.visit", problems))
    owners = tuple(_known(row.get("owner", Owner), Owner, f"{where}.owner", problems))
    classes = tuple(_known(row.get("class", FailClass), FailClass, f"{where}.class", problems))
    stages = tuple(_known([row.get("after")], Stage, f"{where}.after", problems))
    says = tuple(_known(row.get("says", ()), Verdict, f"{where}.says", problems))
    if not says:
        problems.append(f"{where}: it says nothing")
    for stage, verdict, visit in itertools.product(stages, says, visits):
        for owner in (None,) if verdict in GOOD else owners:
            for fail_class in classes if verdict is Verdict.INVESTIGATE else (None,):
                yield Key(stage=stage, visit=visit, verdict=verdict, owner=owner, fail_class=fail_class)


def _target(row: Mapping[str, Any], where: str, problems: list[str]) -> Target | None:
    word = row.get("next")
    if word in set(End):
        return End(word)
    return next(_known([word], Stage, f"{where}.next", problems), None)


def _known(words: Iterable[Any], kind: Any, where: str, problems: list[str]) -> Iterator[Any]:
    """The members that the words name; those that name none are problems."""
    if isinstance(words, str):
        words = [words]
    for word in words:
        try:
            yield kind(word)
        except ValueError:
            problems.append(f"{where}: {word!r} is none of {', '.join(member.value for member in kind)}")

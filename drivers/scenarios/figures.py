"""The figures of plays as Markdown: what was asked, what it took, and what pointers save."""

from collections.abc import Iterator, Sequence

from drivers.scenarios.pasted import Compared, compare
from drivers.scenarios.runner import Outcome
from drivers.scenarios.seen import total
from farm.data import config_folder
from farm.models import dollars

_HEAD = (
    "| scenario | jobs | ends | requests | answers | input | written 5 min | written 1 h | read | output | cost "
    "| transitions | seconds |"
)


def compared(outcomes: Sequence[Outcome]) -> tuple[Compared, ...]:
    """Both ways of asking, for the plays on real ops in which agents succeed."""
    return tuple(
        compare(each.play.name, each.seen.calls, each.bodies, config_folder() / "recipes" / each.play.recipe)
        for each in outcomes
        if each.play.recipe == "cutile-rs" and each.seen.calls and not each.problems
    )


def markdown(outcomes: Sequence[Outcome], compared: Sequence[Compared]) -> str:
    """All of it."""
    good = sum(not outcome.problems for outcome in outcomes)
    lines = [f"{good} of {len(outcomes)} as expected.", "", _HEAD, "|---" * 13 + "|"]
    lines += [_row(outcome) for outcome in outcomes]
    lines += ["", *_said(outcomes)]
    if compared:
        lines += ["", *_bytes(compared)]
    return "\n".join(lines) + "\n"


def _row(outcome: Outcome) -> str:
    seen = outcome.seen
    sums = total(seen.usage)
    ends = sorted({f"{job.state} {job.fault or ''}".strip() for job in seen.jobs})
    cells = (
        outcome.play.name if not outcome.problems else f"**{outcome.play.name}**",
        len(seen.jobs),
        ", ".join(ends),
        len(seen.calls),
        sum(row.whole for row in seen.usage),
        sums["input"],
        sums["cache_write_5m"],
        sums["cache_write_1h"],
        sums["cache_read"],
        sums["output"],
        dollars(sums["micro_usd"]),
        sum(job.transitions for job in seen.jobs),
        round(seen.seconds),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _said(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "| scenario | what | stages |"
    yield "|---|---|---|"
    for outcome in outcomes:
        stages = " > ".join(outcome.seen.jobs[0].stages) if outcome.seen.jobs else ""
        yield f"| {outcome.play.name} | {outcome.play.what} | {stages} |"


def _bytes(compared: Sequence[Compared]) -> Iterator[str]:
    yield "| scenario | requests | first, at most | all, bytes | pasted: requests | first, at most | all, bytes |"
    yield "|---|---|---|---|---|---|---|"
    for item in compared:
        ways = (item.pointers, item.pasted)
        cells = [item.name, *(part for way in ways for part in (way.requests, way.first_bytes, way.bytes))]
        yield "| " + " | ".join(map(str, cells)) + " |"

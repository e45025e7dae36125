"""Rows of one subject, put side by side: what each did in each phase. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from farm.measured.records import Collected, Outcome, Phase, RowRun

#: Of several runs of one row in one phase, the one that ended worst counts.
_WORST = (Outcome.FAILED, Outcome.SKIPPED, Outcome.NOT_RUN, Outcome.PASSED)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Everything that ran, by key."""

    source_collected: Collected | None
    target_collected: Collected | None
    source: dict[str, RowRun]
    target: dict[str, RowRun]
    stub: dict[str, RowRun]
    hollow: dict[str, RowRun]
    null: dict[str, dict[str, RowRun]]  #: by key, then by null kernel
    expected: tuple[str, ...] = field(default=())  #: keys that the source passes, in the order of its collection


def gather(collected: Iterable[Collected], runs: Iterable[RowRun]) -> Rows:
    """The rows of one subject."""
    sides: dict[Phase, Collected] = {}
    for one in collected:
        before = sides.get(one.phase)
        sides[one.phase] = one if before is None else _both(before, one)
    phases: dict[Phase, dict[str, RowRun]] = {phase: {} for phase in Phase}
    null: dict[str, dict[str, RowRun]] = {}
    for run in runs:
        if run.phase is Phase.NULL:
            kind = null.setdefault(run.key, {})
            kind[run.null or "null"] = run
        else:
            before_run = phases[run.phase].get(run.key)
            phases[run.phase][run.key] = run if before_run is None else _worse(before_run, run)
    source = sides.get(Phase.SOURCE)
    passed = phases[Phase.SOURCE]
    keys = source.keys if source is not None else ()
    return Rows(
        source_collected=source,
        target_collected=sides.get(Phase.TARGET),
        source=passed,
        target=phases[Phase.TARGET],
        stub=phases[Phase.STUB],
        hollow=phases[Phase.HOLLOW],
        null=null,
        expected=tuple(key for key in dict.fromkeys(keys) if outcome(passed, key) is Outcome.PASSED),
    )


def outcome(runs: dict[str, RowRun], key: str) -> Outcome:
    """How a row ended; a row without a record did not run."""
    return runs[key].outcome if key in runs else Outcome.NOT_RUN


def reason(runs: dict[str, RowRun], key: str) -> str:
    """Why it did not pass, in one line."""
    run = runs.get(key)
    return "no record of it" if run is None else run.reason or run.outcome.value.replace("_", " ")


def _worse(one: RowRun, other: RowRun) -> RowRun:
    return min(one, other, key=lambda run: _WORST.index(run.outcome))


def _both(one: Collected, other: Collected) -> Collected:
    """Several processes may collect one side, a file each."""
    return Collected(
        subject=one.subject,
        phase=one.phase,
        keys=one.keys + other.keys,
        uncollected=one.uncollected + other.uncollected,
        process={**one.process, **_differing(one.process, other.process)},
    )


def _differing(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    return {
        name: value if one.get(name, value) == value else f"{one[name]}; {value}" for name, value in other.items()
    }

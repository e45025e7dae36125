"""The routing table as data: which stage follows which reply, and how often a stage may run.

`check` lists every mistake of a table; a recipe with one is refused before a job is queued.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from farm.fault import Owner
from farm.pipeline.stage import FailClass, Stage, Verdict


class End(StrEnum):
    """How a route ends."""

    COMPLETE = "complete"  #: the route was walked to its end
    DIAGNOSED = "diagnosed"  #: walked to its end, and something is wrong
    STOP = "stop"  #: nothing after this could be trusted


class Visit(StrEnum):
    """Which visits of a stage a row speaks about."""

    FIRST = "first"  #: the first time the stage runs
    LATER = "later"  #: the second time and after


@dataclass(frozen=True, kw_only=True)
class Key:
    """What the router looks at."""

    stage: Stage
    visit: Visit
    verdict: Verdict
    owner: Owner | None = None  #: for failures only
    fail_class: FailClass | None = None  #: for INVESTIGATE only


Target = Stage | End

#: Verdicts that are no failure and need no owner.
GOOD = frozenset(
    {
        Verdict.PASS,
        Verdict.PASS_WITH_NOTES,
        Verdict.COMPILED,
        Verdict.ALL_PASS,
        Verdict.DEFERRED,
        Verdict.DONE,
        Verdict.ALIGNED,
        Verdict.INVESTIGATE,
        Verdict.FAIL_COMPILER_BUG,
    }
)

#: The closed set of verdicts of each stage.
VERDICTS: Mapping[Stage, frozenset[Verdict]] = {
    Stage.A: frozenset({Verdict.PASS, Verdict.FAIL_FIXABLE, Verdict.BLOCKED}),
    Stage.B: frozenset({Verdict.COMPILED, Verdict.FAIL_COMPILE, Verdict.FAIL_FIXABLE, Verdict.BLOCKED}),
    Stage.C: frozenset(
        {
            Verdict.PASS,
            Verdict.PASS_WITH_NOTES,
            Verdict.FAIL_FIXABLE,
            Verdict.FAIL_COMPILER_BUG,
            Verdict.BLOCKED,
        }
    ),
    Stage.D: frozenset({Verdict.ALL_PASS, Verdict.DEFERRED, Verdict.FAIL, Verdict.BLOCKED}),
    Stage.E: frozenset({Verdict.DONE, Verdict.DEFERRED, Verdict.INVESTIGATE, Verdict.BLOCKED}),
    Stage.F: frozenset({Verdict.FIXABLE, Verdict.ALIGNED, Verdict.BLOCKED}),
}

#: How often each stage may run in one attempt.
CAPS: Mapping[Stage, int] = {Stage.A: 1, Stage.B: 2, Stage.C: 1, Stage.D: 2, Stage.E: 2, Stage.F: 1}


def _rows() -> dict[Key, Target]:
    rows: dict[Key, Target] = {}

    def add(
        stage: Stage,
        verdicts: tuple[Verdict, ...],
        target: Target,
        *,
        owners: tuple[Owner | None, ...] = (None,),
        fail_classes: tuple[FailClass | None, ...] = (None,),
        visits: tuple[Visit, ...] = (Visit.FIRST, Visit.LATER),
    ) -> None:
        for verdict in verdicts:
            for owner in owners:
                for fail_class in fail_classes:
                    for visit in visits:
                        key = Key(stage=stage, visit=visit, verdict=verdict, owner=owner, fail_class=fail_class)
                        rows[key] = target

    every = tuple(Owner)
    host, kernel, env = (Owner.HOST,), (Owner.KERNEL,), (Owner.ENV,)
    add(Stage.A, (Verdict.PASS,), Stage.B)
    add(Stage.A, (Verdict.FAIL_FIXABLE, Verdict.BLOCKED), End.STOP, owners=every)
    add(Stage.B, (Verdict.COMPILED,), Stage.D)
    add(Stage.B, (Verdict.FAIL_COMPILE, Verdict.FAIL_FIXABLE, Verdict.BLOCKED), End.STOP, owners=every)
    add(Stage.D, (Verdict.ALL_PASS, Verdict.DEFERRED), Stage.E)
    add(Stage.D, (Verdict.FAIL, Verdict.BLOCKED), Stage.D, owners=host)
    add(Stage.D, (Verdict.FAIL, Verdict.BLOCKED), Stage.C, owners=kernel)
    add(Stage.D, (Verdict.FAIL, Verdict.BLOCKED), End.STOP, owners=env)
    add(Stage.E, (Verdict.DONE, Verdict.DEFERRED), End.COMPLETE)
    first, later = (Visit.FIRST,), (Visit.LATER,)
    add(Stage.E, (Verdict.INVESTIGATE,), Stage.F, fail_classes=(FailClass.SHAPES,), visits=first)
    add(Stage.E, (Verdict.INVESTIGATE,), Stage.C, fail_classes=(FailClass.LARGE,), visits=first)
    add(Stage.E, (Verdict.BLOCKED,), Stage.C, owners=every, visits=first)
    add(Stage.E, (Verdict.INVESTIGATE,), End.DIAGNOSED, fail_classes=tuple(FailClass), visits=later)
    add(Stage.E, (Verdict.BLOCKED,), End.DIAGNOSED, owners=every, visits=later)
    add(Stage.C, (Verdict.FAIL_FIXABLE,), Stage.D, owners=host)
    add(Stage.C, (Verdict.FAIL_FIXABLE,), Stage.B, owners=kernel)
    add(Stage.C, (Verdict.FAIL_FIXABLE,), End.STOP, owners=env)
    add(Stage.C, (Verdict.PASS, Verdict.PASS_WITH_NOTES, Verdict.FAIL_COMPILER_BUG), End.DIAGNOSED)
    add(Stage.C, (Verdict.BLOCKED,), End.DIAGNOSED, owners=every)
    add(Stage.F, (Verdict.FIXABLE,), Stage.D, owners=host)
    add(Stage.F, (Verdict.FIXABLE,), Stage.B, owners=kernel)
    add(Stage.F, (Verdict.FIXABLE,), End.STOP, owners=env)
    add(Stage.F, (Verdict.ALIGNED,), End.DIAGNOSED)
    add(Stage.F, (Verdict.BLOCKED,), End.DIAGNOSED, owners=every)
    return rows


@dataclass(frozen=True, kw_only=True)
class RouteTable:
    """A recipe's routing: rows, verdict sets, caps."""

    rows: Mapping[Key, Target] = field(default_factory=_rows)
    verdicts: Mapping[Stage, frozenset[Verdict]] = field(default_factory=lambda: VERDICTS)
    caps: Mapping[Stage, int] = field(default_factory=lambda: CAPS)
    start: Stage = Stage.A

    def check(self) -> tuple[str, ...]:
        """Every mistake: missing rows, verdicts outside their set, missing or impossible caps."""
        found = [f"stage {s.value} has no cap" for s in Stage if s not in self.caps]
        found += [f"stage {s.value}: a cap of {n} is not positive" for s, n in self.caps.items() if n < 1]
        for key in self.rows:
            if key.verdict not in self.verdicts[key.stage]:
                found.append(f"stage {key.stage.value} cannot say {key.verdict.value}")
        found += [f"no row for {key}" for key in self.expected_keys() if key not in self.rows]
        return tuple(found)

    def expected_keys(self) -> tuple[Key, ...]:
        """Every combination that a well-formed reply can have."""
        keys = []
        for stage, verdicts in self.verdicts.items():
            for verdict in sorted(verdicts):
                owners: tuple[Owner | None, ...] = (None,) if verdict in GOOD else tuple(Owner)
                investigate = verdict is Verdict.INVESTIGATE
                classes: tuple[FailClass | None, ...] = tuple(FailClass) if investigate else (None,)
                keys += [
                    Key(stage=stage, visit=visit, verdict=verdict, owner=owner, fail_class=fail_class)
                    for visit in Visit
                    for owner in owners
                    for fail_class in classes
                ]
        return tuple(keys)

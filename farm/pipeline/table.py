"""The routing table: which stage follows which reply, and how often a stage may run. Recipes hold its rows.

`check` lists every mistake of a table; a recipe with one is refused before a job is queued.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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

    def __str__(self) -> str:
        words = [f"{self.stage.value} says {self.verdict.value}", self.owner, self.fail_class]
        return " ".join(word for word in words if word) + f" ({self.visit} visit)"


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


@dataclass(frozen=True, kw_only=True)
class RouteTable:
    """A recipe's routing: rows, verdict sets, caps."""

    rows: Mapping[Key, Target]
    verdicts: Mapping[Stage, frozenset[Verdict]]  #: the closed set of each stage
    caps: Mapping[Stage, int]  #: most visits of a stage; what makes every route end
    start: Stage = Stage.A

    def check(self) -> tuple[str, ...]:
        """Every mistake: a reply without a row, a row for no reply, a cap that is missing or has no end."""
        found = [f"stage {s.value} has no cap" for s in Stage if s not in self.caps]
        found += [f"stage {s.value}: a cap of {n} is not positive" for s, n in self.caps.items() if n < 1]
        found += [f"stage {s.value} has no verdict" for s in Stage if not self.verdicts.get(s)]
        expected = self.expected_keys()
        found += [f"no row for {key}" for key in expected if key not in self.rows]
        found += [f"a row for what no reply can be: {key}" for key in self.rows if key not in set(expected)]
        if End.COMPLETE not in self.rows.values():
            found.append("no row leads to complete")
        entered = {self.start, *(target for target in self.rows.values() if isinstance(target, Stage))}
        found += [f"no row leads to stage {s.value}" for s in Stage if s not in entered]
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

"""What an attack is, and what became of it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from farm.gates import GateName, Ruling


class Where(StrEnum):
    """Who refuses."""

    CHANGE_SET = "change set"  #: the recipe's check of a patch
    LEAK_SCAN = "leak scan"  #: the search for the hidden implementation in what a box can read
    CORRECTNESS = GateName.CORRECTNESS.value  #: the gate
    EXECUTED = GateName.EXECUTED.value  #: the gate
    GEOMEAN = GateName.GEOMEAN.value  #: the gate
    RESULTS = "results"  #: the reader of a results folder
    EVIDENCE = "evidence"  #: the decision of a commit, repeated


class Part(StrEnum):
    """The parts of the gates that a candidate of the corpus runs through."""

    SOURCE = "source"  #: rows of the source; once an op
    NULL = "null"  #: rows of the source with null kernels; once an op
    TARGET = "target"  #: rows of the candidate
    STUB = "stub"  #: the same with a library that fails
    HOLLOW = "hollow"  #: the same with a library that does nothing
    PROBES = "probes"  #: inputs that no row has
    TIMING = "timing"  #: timed calls


#: In the order in which a candidate's parts run, unless its attack names one to begin with.
OWN_PARTS = (Part.TARGET, Part.STUB, Part.HOLLOW, Part.PROBES, Part.TIMING)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """How a cheat is to be refused."""

    where: Where
    words: tuple[str, ...]  #: all of them are in the reason: they name the cheat
    ruling: Ruling = Ruling.FAIL


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One change of a file of the honest candidate; the text `old` must be there."""

    path: str  #: in the target repo
    new: str
    old: str | None = None  #: None: the whole file, which may be new
    link: bool = False  #: `new` is the target of a link


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A candidate that cheats, and a twin that differs from it in the cheat alone."""

    name: str
    what: str  #: the cheat, in a sentence
    expected: Expected
    cheat: tuple[Edit, ...]
    twin: tuple[Edit, ...] = ()  #: without any, the landed implementation itself
    op: str = "relu"
    base: tuple[Edit, ...] = ()  #: of the repo itself, for both
    first: Part = Part.TARGET  #: the part that is to catch it; the others run only if it does not


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """One reason why something is not accepted."""

    where: Where
    ruling: Ruling
    reason: str

    def meets(self, expected: Expected) -> bool:
        """Whether it is the expected one."""
        return (self.where, self.ruling) == (expected.where, expected.ruling) and all(
            word in self.reason for word in expected.words
        )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one candidate, or of one set of records."""

    refusals: tuple[Refusal, ...]  #: empty: accepted
    seconds: float

    @property
    def accepted(self) -> bool:
        """Whether it would be committed."""
        return not self.refusals


@dataclass(frozen=True, kw_only=True)
class OnPaper:
    """An attack on records or files, which nothing has to be run for."""

    name: str
    what: str  #: the cheat, in a sentence
    place: str  #: `records` or `files`
    expected: Expected
    cheat: Callable[[], Verdict]
    twin: Callable[[], Verdict]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One attack after its trial."""

    name: str
    what: str
    place: str  #: `cpu`: run here; `records`: on recorded records; `files`: on result or evidence files
    expected: Expected
    cheat: Verdict
    twin: Verdict

    @property
    def refusal(self) -> Refusal | None:
        """The cheat's refusal that names it; else its first."""
        named = (refusal for refusal in self.cheat.refusals if refusal.meets(self.expected))
        return next(named, next(iter(self.cheat.refusals), None))

    @property
    def refused(self) -> bool:
        """Whether the cheat was refused for what it is."""
        return self.refusal is not None and self.refusal.meets(self.expected)

    @property
    def line(self) -> str:
        """What became of it, in a line."""
        found = self.refusal
        cheat = "ACCEPTED" if found is None else f"{found.where.value}: {found.reason}"
        if found is not None and not self.refused:
            cheat = f"NOT REFUSED FOR WHAT IT IS: {cheat}"
        refusals = "; ".join(f"{refusal.where.value}: {refusal.reason}" for refusal in self.twin.refusals)
        twin = "honest twin accepted" if self.twin.accepted else f"HONEST TWIN REFUSED: {refusals}"
        return f"{self.name}: {cheat}; {twin}"

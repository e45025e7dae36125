"""The leak scan's decisions: what of a hidden implementation a box could read, and where.

Three things give an implementation away: a file with the same bytes, the definition of one of its
names (or the bare name where nothing visible uses it, such as in a built library), and runs of its
tokens. Runs that several visible files of the base share are the boilerplate of all implementations,
those of the source implementation are what a conversion begins with: neither counts. Of files that
were edited, only the removed lines are hidden.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.hiding import Bare
from farm.shingles import RUN_TOKENS, Fingerprinter, has_word, is_binary
from farm.tree import Tree, sha256, tree_digest

#: A run that more visible files than this hold is boilerplate.
COMMON_FILES = 2
#: Runs of one hidden file, none of them boilerplate, that make a place a copy: half of them, within these.
FEWEST_RUNS, MOST_RUNS = 4, 12
#: Share of a hidden file's runs, boilerplate or not, that makes a place a copy.
WHOLE = 0.8


class LeakKind(StrEnum):
    """How a place gives a hidden implementation away."""

    SAME_BYTES = "same_bytes"  #: a file, or an object of a repository, equal to a hidden file
    NAME = "name"  #: an entry or export of the hidden implementation
    TEXT = "text"  #: runs of a hidden file's tokens
    OBJECT = "object"  #: an object of the workspace's repository that its one commit does not need


@dataclass(frozen=True, kw_only=True)
class Leak:
    """One place that holds something hidden."""

    kind: LeakKind
    place: str  #: `workspace`, or the name of a mount
    path: str  #: in the place; `archive!member` inside archives
    hidden: str  #: path of the hidden file, or the name
    detail: str  #: one clause: how much was found


@dataclass(frozen=True, kw_only=True)
class ScannedPlace:
    """What was looked through."""

    name: str
    digest: str  #: of its content
    files: int
    bytes: int
    unsearched: int  #: files that are larger than any hidden file and larger than what is searched


@dataclass(frozen=True, kw_only=True)
class LeakReport:
    """The clean certificate, or what is wrong."""

    findings: tuple[Leak, ...]  #: each refuses the job
    siblings: tuple[Leak, ...]  #: in declared look-alikes: reported
    mentions: tuple[Leak, ...]  #: a hidden name that the visible base uses for itself: reported
    places: tuple[ScannedPlace, ...]
    hidden_sha256: str  #: digest of the hidden files as a tree
    schema: int = 1

    @property
    def clean(self) -> bool:
        """Whether a box may have these places."""
        return not self.findings

    @property
    def summary(self) -> str:
        """One sentence for a trace: the first places that give something away, or that there are none."""
        if self.clean:
            return f"nothing hidden can be read in {len(self.places)} places"
        shown = "; ".join(
            f"{leak.place}: {leak.path} gives away {leak.hidden} ({leak.detail})" for leak in self.findings[:3]
        )
        more = len(self.findings) - 3
        rest = f"; and {more} more" if more > 0 else ""
        return f"the box could read the hidden implementation: {shown}{rest}; remove it or hide it in the recipe"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What to look for: everything hidden that is not boilerplate of the visible base."""

    blobs: Mapping[str, str]  #: sha256 of a hidden file -> its path
    runs: Mapping[str, frozenset[int]]  #: path of a hidden file -> its runs
    common: frozenset[int]  #: runs that are boilerplate or stand in the source implementation
    secret: tuple[str, ...]  #: names that no visible text uses
    public: tuple[str, ...]  #: names that a visible file uses, for something of its own or as a mention

    @property
    def all_runs(self) -> frozenset[int]:
        """The runs of all hidden files."""
        return frozenset().union(*self.runs.values())


class LeakScan:
    """Looks for hidden implementations; remembers the runs of contents it has seen."""

    def __init__(self) -> None:
        self._fingerprinter = Fingerprinter()
        self._runs: dict[str, frozenset[int]] = {}

    def answer(self, bare: Bare, visible: Tree, source: Sequence[str]) -> Answer:
        """What a hidden implementation consists of, given the files that stay visible.

        `source` are the paths of the op's source implementation: what was converted from it is no secret.
        """
        runs = {}
        for path, entry in bare.hidden.items():
            kept = bare.tree.get(path)
            text = entry.data if kept is None else _removed_lines(entry.data, kept.data)
            runs[path] = self._fingerprinter.runs(text)
        wanted = frozenset().union(*runs.values())
        counts = Counter(run for found in self._visible_runs(visible).values() for run in found & wanted)
        given = {path: visible[path] for path in source if path in visible}
        converted = wanted & frozenset().union(*self._visible_runs(given).values())
        texts = [entry.data for entry in visible.values() if not is_binary(entry.data)]
        public = {name for name in bare.symbols if any(has_word(text, name.encode()) for text in texts)}
        return Answer(
            blobs={sha256(e.data): path for path, e in bare.hidden.items() if len(e.data.split()) >= RUN_TOKENS},
            runs={path: found for path, found in runs.items() if found},
            common=converted | {run for run, count in counts.items() if count > COMMON_FILES},
            secret=tuple(name for name in bare.symbols if name not in public),
            public=tuple(name for name in bare.symbols if name in public),
        )

    def workspace(self, answer: Answer, visible: Tree) -> tuple[tuple[Leak, ...], tuple[Leak, ...]]:
        """Leaks and mentions among the files of the workspace."""
        leaks: list[Leak] = []
        mentions: list[Leak] = []
        runs = self._visible_runs(visible)
        for path, entry in visible.items():
            digest = sha256(entry.data)
            leaks += same_bytes(answer, "workspace", path, digest)
            leaks += copied_text(answer, "workspace", path, runs.get(digest, frozenset()))
            found, said = names(answer, "workspace", path, entry.data)
            leaks += found
            mentions += said
        return tuple(leaks), tuple(mentions)

    def _visible_runs(self, visible: Tree) -> dict[str, frozenset[int]]:
        """Runs by digest of the content, so that a file that lies in two places counts once."""
        found = {}
        for entry in visible.values():
            digest = sha256(entry.data)
            if digest not in self._runs and not is_binary(entry.data):
                self._runs[digest] = self._fingerprinter.runs(entry.data)
            if digest in self._runs:
                found[digest] = self._runs[digest]
        return found


def _removed_lines(before: bytes, after: bytes) -> bytes:
    lines = before.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, lines, after.splitlines(keepends=True), autojunk=False)
    return b"".join(
        b"".join(lines[start:end])
        for tag, start, end, _, _ in matcher.get_opcodes()
        if tag in ("delete", "replace")
    )


def same_bytes(answer: Answer, place: str, path: str, digest: str) -> list[Leak]:
    """The leak that a content is, by its sha256 alone."""
    hidden = answer.blobs.get(digest)
    if hidden is None:
        return []
    return [Leak(kind=LeakKind.SAME_BYTES, place=place, path=path, hidden=hidden, detail="the same bytes")]


def copied_text(answer: Answer, place: str, path: str, runs: frozenset[int]) -> list[Leak]:
    """The hidden files that a content with these runs repeats."""
    found = []
    for hidden, wanted in answer.runs.items():
        shared = wanted & runs
        rare = shared - answer.common
        needed = min(MOST_RUNS, max(FEWEST_RUNS, len(wanted) // 2))
        whole = len(wanted) >= FEWEST_RUNS and len(shared) >= WHOLE * len(wanted)
        if len(rare) >= needed or whole:
            detail = f"{len(shared)} of {len(wanted)} runs of {RUN_TOKENS} tokens, {len(rare)} not boilerplate"
            found.append(Leak(kind=LeakKind.TEXT, place=place, path=path, hidden=hidden, detail=detail))
    return found


def names(answer: Answer, place: str, path: str, data: bytes) -> tuple[list[Leak], list[Leak]]:
    """The leaks and the mentions that the names in a content are."""
    leaks: list[Leak] = []
    mentions: list[Leak] = []
    for name in (*answer.secret, *answer.public):
        if not has_word(data, name.encode()):
            continue
        defines = re.search(rb"\bfn\s+" + name.encode() + rb"\b", data) is not None
        detail = "defined here" if defines else "named here"
        leak = Leak(kind=LeakKind.NAME, place=place, path=path, hidden=name, detail=detail)
        (leaks if defines or name in answer.secret else mentions).append(leak)
    return leaks, mentions


def report(
    bare: Bare,
    leaks: Iterable[Leak],
    mentions: Iterable[Leak],
    places: Iterable[ScannedPlace],
) -> LeakReport:
    """The report: leaks in declared siblings set apart, in the order of kind, place and path."""
    every = sorted(leaks, key=_order)
    sibling = {leak for leak in every if leak.place == "workspace" and leak.path in bare.siblings}
    return LeakReport(
        findings=tuple(leak for leak in every if leak not in sibling),
        siblings=tuple(leak for leak in every if leak in sibling),
        mentions=tuple(sorted(mentions, key=_order)),
        places=tuple(places),
        hidden_sha256=tree_digest(bare.hidden),
    )


def _order(leak: Leak) -> tuple[str, ...]:
    return (leak.kind, leak.place, leak.path, leak.hidden)

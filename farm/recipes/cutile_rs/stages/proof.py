"""Builds the candidate, runs its rows on the stand-in driver, and compares everything with the reference.

Stage D and the gate both call `prove`; they differ in what they do with the answer.
"""

import lzma
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from farm import crate
from farm.analysis import BRANCH, NO_LAUNCH, Analysis, CandidateRow, Row, RowStatus, Signature
from farm.gates import RowProof, SignatureProof
from farm.layout import Layout, find_package
from farm.orders import LIBRARY, BoxOrder, Purpose
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.launches import compare_rows
from farm.recipes.cutile_rs.stages.launched import NOTHING_SAID, Compiled, LaunchedModules, Seen, Standing
from farm.recipes.cutile_rs.stages.tools import save, scratch_copy, workspace_tree
from farm.recipes.cutile_rs.stages.tracing import trace_candidate

CANDIDATE = "candidate.json"
#: Of xz: a second for a library of 10 MB, which becomes a third.
LIBRARY_PRESET = 3
#: Of a tuner's configuration: no row launches it, on either side.
UNTRIED = "no row launches this configuration of the tuner's space"
_RANK = {Standing.SAME: 0, Standing.DECLARED: 1, Standing.HOST: 2, Standing.KERNEL: 3}


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What the comparison of candidate and reference came to."""

    rows: tuple[RowProof, ...] = ()
    signatures: tuple[SignatureProof, ...] = ()
    collected: int = 0  #: rows of the target backend that ran to their final comparison
    skipped: int = 0  #: rows that the tests skip for the source: nothing is known about them
    broken: tuple[str, ...] = ()  #: expected rows that the target lacks, skips or does not survive
    undecided: tuple[str, ...] = ()  #: rows that a trace can say nothing about, each with its reason
    build: crate.Build | None = None  #: set when the crate did not build
    failed: ProcessResult | None = None  #: set when the recording itself failed
    library: bytes | None = None  #: what was built
    standings: Mapping[str, Standing] = field(default_factory=dict)  #: of launched signatures, the worst

    @property
    def same(self) -> bool:
        """Whether everything was compared and everything is the same."""
        return (
            self.build is None
            and self.failed is None
            and not self.broken
            and not self.undecided
            and bool(self.rows)
            and bool(self.signatures)
            and all(row.same for row in self.rows)
            and all(proof.same for proof in self.signatures)
        )


def prove(
    order: BoxOrder,
    io: BoxIO,
    layout: Layout,
    analysis: Analysis,
    reference: Path,
    name: str,
    compiled: Compiled = NOTHING_SAID,
) -> Proof:
    """Build, record, compare. `reference` is the folder that the signatures' IR paths are relative to."""
    (io.out / CANDIDATE).unlink(missing_ok=True)  # an earlier visit's says nothing about this one
    copy = scratch_copy(io, name)
    built = build_library(io, layout, copy)
    if built.library is None:
        return Proof(build=built)
    io.log(f"built in {built.seconds:.1f} s: {built.library}")
    if order.purpose is Purpose.GATE:
        keep_library(io, built.library)
    library = built.library.read_bytes()
    out = io.out / "candidate"
    rows = trace_candidate(order, io, copy, analysis.tests, out, built.library)
    if isinstance(rows, ProcessResult):
        return Proof(failed=rows, library=library)
    save(io, CANDIDATE, rows)
    return replace(compare_all(analysis, rows, reference, out, order.gpu, compiled), library=library)


def build_library(io: BoxIO, layout: Layout, copy: Path) -> crate.Build:
    """Build the crate of a copy of the workspace."""
    package = find_package(workspace_tree(io), layout)
    return crate.build(_In(io, copy), (copy / package.path(layout.modules)).parent.parent)


def keep_library(io: BoxIO, library: Path) -> None:
    """Leave the library among the box's artifacts: a GPU machine gets this one, it has no compiler."""
    (io.out / LIBRARY).write_bytes(lzma.compress(library.read_bytes(), preset=LIBRARY_PRESET))


def compare_all(
    analysis: Analysis,
    rows: tuple[CandidateRow, ...],
    reference: Path,
    candidate: Path,
    gpu: str,
    compiled: Compiled = NOTHING_SAID,
) -> Proof:
    """Compare every traced row's launches and every signature's Tile IR.

    What is launched for a signature that is declared to differ must be what kernel.rs was compiled to for it
    (ir/generated); only a GPU can say what it computes, so its rows are undecided.
    """
    modules = LaunchedModules(reference=reference, candidate=candidate, gpu=gpu, compiled=compiled)
    signatures = {signature.id: signature for signature in analysis.signatures}
    by_key = {row.key: row for row in rows}
    seen: dict[str, Seen] = {}
    broken = []
    for row in analysis.rows:
        mate = by_key.get(row.key)
        if row.status is not RowStatus.TRACED:
            continue
        if mate is None or not _ran(row, mate):
            broken.append(f"row {row.key}: {_absence(mate)}")
            continue
        for launch, made in zip(row.launches, mate.launches, strict=False):
            signature = signatures[launch.signature]
            look = modules.look(signature, made)
            if signature.id not in seen or _RANK[look.standing] > _RANK[seen[signature.id].standing]:
                seen[signature.id] = look
    unlaunched = tuple(_never_launched(s) for s in analysis.signatures if s.id not in seen)
    compared = compare_rows(analysis.rows, rows, modules.parameters())
    known = {row.key: row for row in analysis.rows}
    doubts = {
        row.key: doubt
        for row in rows
        if (doubt := _doubt(known.get(row.key), row) or _differs(known.get(row.key), row, modules))
    }
    return Proof(
        rows=tuple(
            RowProof(
                key=c.key,
                same=c.difference is None and c.key not in doubts,
                launches=len(known[c.key].launches),
                difference=c.difference or doubts.get(c.key),
            )
            for c in compared
        ),
        signatures=(*(look.proof for look in seen.values()), *unlaunched),
        collected=sum(_ran(known.get(row.key), row) for row in rows),
        skipped=sum(row.status is RowStatus.SKIPPED for row in analysis.rows),
        broken=tuple(broken),
        undecided=(
            *(f"row {key}: {doubt}" for key, doubt in sorted(doubts.items())),
            *(f"signature {s.signature}: {s.difference}" for s in unlaunched if s.difference == UNTRIED),
        ),
        standings={signature: look.standing for signature, look in seen.items()},
    )


def _ran(row: Row | None, mate: CandidateRow) -> bool:
    """Whether the target's row ran to its end; where the source launches nothing, it need not either."""
    idle = row is not None and row.status is RowStatus.TRACED and not row.launches
    return mate.status is RowStatus.TRACED or (idle and mate.reason == NO_LAUNCH)


def _doubt(row: Row | None, mate: CandidateRow) -> str | None:
    """Why a row that ran on the target proves nothing, whatever its launches are."""
    if mate.status is RowStatus.TRACED and (row is None or row.status is not RowStatus.TRACED):
        return "the target runs a row that the source does not, so there is nothing to compare it with"
    sides = {"source": () if row is None else row.steps, "target": mate.steps}
    for side, steps in sides.items():
        if any(step.what == BRANCH for step in steps):
            return f"the {side}'s host code decides on a tensor's value, and a trace follows one way alone"
    return None


def _differs(row: Row | None, mate: CandidateRow, modules: LaunchedModules) -> str | None:
    """Why a row with a launch whose Tile IR differs as declared is left to a GPU."""
    for launch, made in zip(() if row is None else row.launches, mate.launches, strict=False):
        seen = modules.known.get((launch.signature, made.sha256))
        if seen is not None and seen.standing is Standing.DECLARED:
            why = modules.compiled.declared[launch.signature]
            return f"the Tile IR of {made.entry} differs as declared: {why}"
    return None


def _absence(mate: CandidateRow | None) -> str:
    return "the target backend has no such row" if mate is None else f"{mate.status.value}: {mate.reason}"


def _never_launched(signature: Signature) -> SignatureProof:
    return SignatureProof(
        signature=signature.id,
        kernel=signature.kernel,
        entry=None,
        same=False,
        rules=(),
        difference=UNTRIED if signature.tuned else "the candidate never launches it",
    )


class _In:
    """The box with another folder as its workspace."""

    def __init__(self, io: BoxIO, workspace: Path) -> None:
        self.workspace = workspace
        self.out = io.out
        self.toolchain = io.toolchain
        self.run = io.run
        self.log = io.log

"""Builds the candidate, runs its rows on the stand-in driver, and compares everything with the reference.

Stage D and the gate both call `prove`; they differ in what they do with the answer.
"""

import lzma
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from farm import crate
from farm.analysis import BRANCH, NO_LAUNCH, Analysis, CandidateRow, Row, RowStatus, Signature
from farm.errors import TileIRError
from farm.gates import RowProof, SignatureProof
from farm.layout import Layout, find_package
from farm.orders import LIBRARY, BoxOrder, Purpose
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.instances import INSTANCES
from farm.recipes.cutile_rs.launches import compare_rows
from farm.recipes.cutile_rs.stages.compiling import GENERATED
from farm.recipes.cutile_rs.stages.tools import save, scratch_copy, workspace_tree
from farm.recipes.cutile_rs.stages.tracing import trace_candidate
from farm.tileir import Comparison, compare, parse

CANDIDATE = "candidate.json"
#: Of xz: a second for a library of 10 MB, which becomes a third.
LIBRARY_PRESET = 3
NONE_DECLARED: Mapping[str, str] = MappingProxyType({})


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
    differs: frozenset[str] = frozenset()  #: signatures whose Tile IR differs, as it is declared to

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


@dataclass(kw_only=True)
class _Comparisons:
    """Comparisons of Tile IR, each pair once."""

    reference: Path
    candidate: Path
    gpu: str
    known: dict[tuple[str, str], Comparison | str] = field(default_factory=dict)

    def get(self, signature: Signature, module: str, sha256: str, text: str) -> Comparison | str:
        """The comparison of a launched module with the reference's `text`, or why there is none."""
        key = (signature.id, sha256)
        if key not in self.known:
            try:
                left = parse((self.reference / text).read_text(encoding="utf-8"))
                right = parse((self.candidate / module).read_text(encoding="utf-8"))
                self.known[key] = compare(left, right, gpu=self.gpu)
            except (TileIRError, OSError) as error:
                self.known[key] = str(error)
        return self.known[key]

    def parameters(self) -> dict[tuple[str, str], tuple[int | None, ...] | None]:
        """What `compare_rows` wants: the parameter mapping of every pair that is the same."""
        return {
            key: found.parameters
            for key, found in self.known.items()
            if isinstance(found, Comparison) and found.same
        }


def prove(
    order: BoxOrder,
    io: BoxIO,
    layout: Layout,
    analysis: Analysis,
    reference: Path,
    name: str,
    declared: Mapping[str, str] = NONE_DECLARED,
) -> Proof:
    """Build, record, compare. `reference` is the folder that the signatures' IR paths are relative to.

    `declared` has the signatures whose Tile IR is said to differ, with why; a gate believes nobody and has none.
    """
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
    return replace(compare_all(analysis, rows, reference, out, order.gpu, declared), library=library)


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
    declared: Mapping[str, str] = NONE_DECLARED,
) -> Proof:
    """Compare every traced row's launches and every signature's Tile IR.

    What is launched for a signature that is declared to differ must be what kernel.rs was compiled to for it
    (ir/generated); its arguments cannot be compared, so its rows are left to a GPU.
    """
    generated = _Comparisons(reference=reference, candidate=candidate, gpu=gpu)
    comparisons = _Comparisons(reference=reference, candidate=candidate, gpu=gpu)
    signatures = {signature.id: signature for signature in analysis.signatures}
    by_key = {row.key: row for row in rows}
    seen: dict[str, SignatureProof] = {}
    known_differences: set[tuple[str, str]] = set()
    wrong: set[str] = set()
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
            found = comparisons.get(signature, made.ir, made.sha256, signature.ir)
            result = _signature_proof(signature, made.entry, found)
            if not result.same and signature.id in declared:
                mine = generated.get(signature, made.ir, made.sha256, f"{GENERATED}/{signature.id}.mlir")
                if isinstance(mine, Comparison) and mine.same:
                    known_differences.add((signature.id, made.sha256))
                else:
                    result = replace(result, difference=_otherwise(made.entry, mine))
            if not result.same and (signature.id, made.sha256) not in known_differences:
                wrong.add(signature.id)
                seen[signature.id] = result
            elif signature.id not in seen or (not result.same and signature.id not in wrong):
                seen[signature.id] = result
    unlaunched = tuple(_never_launched(s) for s in analysis.signatures if s.id not in seen)
    unknown: dict[tuple[str, str], tuple[int | None, ...] | None] = dict.fromkeys(known_differences)
    compared = compare_rows(analysis.rows, rows, comparisons.parameters() | unknown)
    known = {row.key: row for row in analysis.rows}
    doubts = {
        row.key: doubt
        for row in rows
        if (
            doubt := _doubt(known.get(row.key), row)
            or _differs(known.get(row.key), row, known_differences, declared)
        )
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
        signatures=(*seen.values(), *unlaunched),
        collected=sum(_ran(known.get(row.key), row) for row in rows),
        skipped=sum(row.status is RowStatus.SKIPPED for row in analysis.rows),
        broken=tuple(broken),
        undecided=tuple(f"row {key}: {doubt}" for key, doubt in sorted(doubts.items())),
        differs=frozenset(signature for signature, _ in known_differences) - wrong,
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


def _differs(
    row: Row | None, mate: CandidateRow, differences: Set[tuple[str, str]], declared: Mapping[str, str]
) -> str | None:
    """Why a row with a launch whose Tile IR differs as declared is left to a GPU."""
    launches = zip(() if row is None else row.launches, mate.launches, strict=False)
    for launch, made in launches:
        if (launch.signature, made.sha256) in differences:
            return f"the Tile IR of {made.entry} differs as declared: {declared[launch.signature]}"
    return None


def _otherwise(entry: str, found: Comparison | str) -> str:
    why = found if isinstance(found, str) else found.difference
    return f"{entry} was launched otherwise than {INSTANCES} has it compiled: {why}"


def _absence(mate: CandidateRow | None) -> str:
    return "the target backend has no such row" if mate is None else f"{mate.status.value}: {mate.reason}"


def _never_launched(signature: Signature) -> SignatureProof:
    return SignatureProof(
        signature=signature.id,
        kernel=signature.kernel,
        entry=None,
        same=False,
        rules=(),
        difference="the candidate never launches it",
    )


def _signature_proof(signature: Signature, entry: str, comparison: Comparison | str) -> SignatureProof:
    if isinstance(comparison, str):
        return SignatureProof(
            signature=signature.id,
            kernel=signature.kernel,
            entry=entry,
            same=False,
            rules=(),
            difference=comparison,
        )
    difference = None if comparison.difference is None else str(comparison.difference)
    return SignatureProof(
        signature=signature.id,
        kernel=signature.kernel,
        entry=entry,
        same=comparison.same,
        rules=tuple(sorted(comparison.rules)),
        difference=difference,
    )


class _In:
    """The box with another folder as its workspace."""

    def __init__(self, io: BoxIO, workspace: Path) -> None:
        self.workspace = workspace
        self.out = io.out
        self.toolchain = io.toolchain
        self.run = io.run
        self.log = io.log

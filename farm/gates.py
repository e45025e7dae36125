"""Gates, their rulings and the certificates that need no GPU."""

from dataclasses import dataclass
from enum import StrEnum

from farm.orders import Diagnosis


class GateName(StrEnum):
    """The three gates."""

    CORRECTNESS = "correctness"  #: every expected row passes
    EXECUTED = "executed"  #: the target backend really ran
    GEOMEAN = "geomean"  #: speedup against the source at least 0.95


class Ruling(StrEnum):
    """A gate's outcome. A gate that was not run has not passed."""

    PASS = "pass"  #: proven
    FAIL = "fail"  #: disproven
    AMBIGUOUS = "ambiguous"  #: measured, and still open
    INFRA = "infra"  #: could not be measured
    NOT_RUN = "not_run"  #: nothing tried it yet


class Basis(StrEnum):
    """What a ruling rests on."""

    MEASURED = "measured"  #: on a GPU
    CERTIFIED = "certified"  #: by a certificate


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """One gate's ruling with its evidence."""

    gate: GateName
    ruling: Ruling
    basis: Basis | None  #: None while not run
    summary: str  #: text of the commit trailer, e.g. `certified 26/26 rows`


@dataclass(frozen=True, kw_only=True)
class SignatureProof:
    """One traced specialisation and what the comparison of its Tile IR said."""

    signature: str  #: reference signature id
    kernel: str  #: source kernel
    entry: str | None  #: candidate entry, None: never launched by the candidate
    same: bool
    rules: tuple[str, ...]  #: ids of the normalisation rules that were needed
    difference: str | None  #: first divergence, when not the same


@dataclass(frozen=True, kw_only=True)
class RowProof:
    """One row and what the comparison of its launches said."""

    key: str
    same: bool
    launches: int  #: reference launches of the row
    difference: str | None  #: first divergence, when not the same


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Proof without a GPU: Tile IR the same on all traced signatures, launches equal on every row."""

    op: str
    gpu: str
    rows: tuple[RowProof, ...]
    signatures: tuple[SignatureProof, ...]
    versions: dict[str, str]
    patch_sha256: str
    schema: int = 1

    @property
    def complete(self) -> bool:
        """Whether it proves the op: something was compared and everything was the same."""
        return (
            bool(self.rows)
            and bool(self.signatures)
            and all(row.same for row in self.rows)
            and all(proof.same for proof in self.signatures)
        )


@dataclass(frozen=True, kw_only=True)
class GateReport:
    """/out/gates.json of a gate box."""

    gates: tuple[GateResult, ...]
    certificate: Certificate | None
    rows_collected: int  #: of the target backend
    rows_expected: int  #: of the source backend
    diagnosis: Diagnosis | None  #: set when the patch was not even built or collected
    schema: int = 1

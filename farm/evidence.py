"""The evidence of an accepted commit: everything its decision follows from, in files that each have a digest.

`pack` makes the files, `evidence_digest` what the commit's trailer names, and `verify` repeats the decision from
them without a GPU or a network and believes nothing else in them. Pure: files are names and bytes.
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from farm.acceptance import Decision, Judgement, decide
from farm.codec import CodecError, decode, encode
from farm.gates import GateName, GateReport
from farm.job import Accept
from farm.measured.model import Measured, Plan, Settings
from farm.measured.reading import RecordsBroken, read_records
from farm.measured.ruling import Record, rule
from farm.tree import sha256

T = TypeVar("T")

MANIFEST, CLAIM, GATES, SETTINGS, MEASURED = (
    "evidence.json",
    "claim.json",
    "gates.json",
    "settings.json",
    "measured.json",
)
#: Names of files of raw records, as the runner on the GPU machine wrote them.
RECORDS = (".jsonl", ".jsonl.gz")
#: A file of records may unpack to so much.
_MOST_BYTES = 4 << 30


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What was accepted, and on which terms."""

    op: str
    recipe: str
    base_commit: str  #: of the target repo
    bare_base: str  #: farm.tree.tree_digest of the bare base
    patch_sha256: str
    accept: Accept
    certifiable: tuple[GateName, ...]
    versions: dict[str, str]
    machine: dict[str, str] = field(default_factory=dict)  #: facts of the GPU machine: name, driver, isolation, ..
    schema: int = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The files of an evidence with their digests; holds nothing else that could be altered."""

    files: dict[str, str]  #: name to sha256
    schema: int = 1


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why an evidence proves nothing."""

    file: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What came of an evidence: proven, exactly if there is no problem."""

    problems: tuple[Problem, ...]
    decision: Decision | None  #: as recomputed; None where the files could not be read
    measured: Measured | None = None  #: as recomputed; None without raw records

    @property
    def proven(self) -> bool:
        """Whether the commit's decision follows from its evidence."""
        return not self.problems and self.decision is not None and self.decision.judgement is Judgement.LAND


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: keys sorted, no spaces, ASCII, a newline at the end."""
    text = json.dumps(encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii") + b"\n"


def pack(
    claim: Claim, report: GateReport, *, settings: Settings | None = None, raw: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """The files of an evidence, the manifest among them.

    `raw` are the runner's files under their own names; those ending in .jsonl or .jsonl.gz hold records, of
    which there are none without `settings`. The certificate is part of the report. Raises ValueError.
    """
    files = dict(raw or {})
    taken = sorted({MANIFEST, CLAIM, GATES, SETTINGS, MEASURED} & set(files))
    if taken:
        raise ValueError(f"a raw file may not be called {taken[0]}")
    files[CLAIM] = canonical(claim)
    files[GATES] = canonical(report)
    if settings is not None:
        files[SETTINGS] = canonical(settings)
        files[MEASURED] = canonical(rule(_records(files), settings))
    manifest = Manifest(files={name: sha256(data) for name, data in files.items()})
    return {**files, MANIFEST: canonical(manifest)}


def evidence_digest(files: Mapping[str, bytes]) -> str:
    """The digest that stands for a whole evidence: sha256 of its manifest."""
    return sha256(files[MANIFEST])


def verify(
    files: Mapping[str, bytes],
    *,
    patch_sha256: str,
    bare_base: str | None = None,
    digest: str | None = None,
    plan: Plan | None = None,
) -> Verified:
    """Repeat the decision. `patch_sha256`, `bare_base` and `digest` come from the commit, not from the evidence.

    `plan` is what had to be measured and reached, the default one unless given.
    Every altered, missing or added file is named. Without `digest` a wholly forged evidence cannot be told from
    a true one; with it any change is found.
    """
    problems = list(_altered(files, digest))
    if problems:
        return Verified(problems=tuple(problems), decision=None)
    try:
        claim, report = _read(Claim, files, CLAIM), _read(GateReport, files, GATES)
        measured = None
        if SETTINGS in files:
            settings = _read(Settings, files, SETTINGS)
            measured = rule(_records(files), settings)
            if settings.plan != (plan or Plan()):
                problems.append(Problem(file=SETTINGS, what="measures by another plan"))
    except _Unreadable as error:
        return Verified(problems=(Problem(file=error.file, what=error.what),), decision=None)
    decision = decide(
        report,
        patch_sha256=patch_sha256,
        accept=claim.accept,
        certifiable=claim.certifiable,
        measured=measured,
    )
    if claim.patch_sha256 != patch_sha256:
        problems.append(Problem(file=CLAIM, what="is about another patch"))
    if bare_base is not None and claim.bare_base != bare_base:
        problems.append(Problem(file=CLAIM, what="is about another bare base"))
    if measured is not None and files.get(MEASURED) != canonical(measured):
        problems.append(Problem(file=MEASURED, what="does not follow from the raw records"))
    if decision.judgement is not Judgement.LAND:
        problems.append(Problem(file=GATES, what=f"does not lead to a commit: {decision.reason}"))
    return Verified(problems=tuple(problems), decision=decision, measured=measured)


def read_document(kind: type[T], files: Mapping[str, bytes], name: str) -> T | None:
    """A document of an evidence, believed in nothing; None when it cannot be read."""
    try:
        return _read(kind, files, name)
    except _Unreadable:
        return None


class _Unreadable(ValueError):
    """A file whose digest is right and whose content is not."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file} {what}")
        self.file, self.what = file, what


def _altered(files: Mapping[str, bytes], digest: str | None) -> Iterator[Problem]:
    if MANIFEST not in files:
        yield Problem(file=MANIFEST, what="is missing")
        return
    if digest is not None and evidence_digest(files) != digest:
        yield Problem(file=MANIFEST, what="does not have the digest that the commit names")
    try:
        manifest = _read(Manifest, files, MANIFEST)
    except _Unreadable as error:
        yield Problem(file=MANIFEST, what=error.what)
        return
    for name in sorted({*manifest.files, *files} - {MANIFEST}):
        if name not in files:
            yield Problem(file=name, what="is missing")
        elif name not in manifest.files:
            yield Problem(file=name, what=f"is not listed in {MANIFEST}")
        elif sha256(files[name]) != manifest.files[name]:
            yield Problem(file=name, what=f"does not have the digest that {MANIFEST} gives")


def _read(kind: type[T], files: Mapping[str, bytes], name: str) -> T:
    """A document of ours, which must be in its canonical form."""
    if name not in files:
        raise _Unreadable(name, "is missing")
    try:
        value = decode(kind, json.loads(files[name]))
        spoiled = canonical(value) != files[name]
    except (CodecError, ValueError, RecursionError) as error:
        raise _Unreadable(name, f"cannot be read: {error}") from error
    if spoiled:
        raise _Unreadable(name, "is not in its canonical form")
    return value


def _records(files: Mapping[str, bytes]) -> Iterator[Record]:
    for name in sorted(files):
        if name.endswith(RECORDS):
            try:
                yield from read_records(_lines(name, files[name]))
            except (RecordsBroken, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
                raise _Unreadable(name, f"cannot be read: {error}") from error


def _lines(name: str, data: bytes) -> Iterator[str]:
    if name.endswith(".gz"):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise OSError(f"unpacks to more than {_MOST_BYTES} bytes")
    yield from data.decode("utf-8").splitlines()

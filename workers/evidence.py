"""Evidence of commits in the artifact store: made when a job lands, found again by the commit's trailer."""

import gzip
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from farm.codec import decode, encode
from farm.errors import ArtifactMissing
from farm.evidence import MANIFEST, Claim, Manifest, evidence_digest, pack
from farm.gates import GateName, GateReport
from farm.job import Accept
from farm.patch import Patch
from farm.store import ArtifactStore
from farm.tree import Tree, tree_digest

if TYPE_CHECKING:
    from farm.rulings import Case

#: Artifact of an attempt: the evidence's manifest, whose digest is the evidence's and in the commit's trailer.
EVIDENCE = MANIFEST
#: The patch's own file in an evidence.
PATCH_FILE = "patch"
RECORDS_FILE = "records.jsonl.gz"


def keep_evidence(
    store: ArtifactStore,
    *,
    op: str,
    recipe: str,
    base: str,
    bare: Tree,
    patch: Patch,
    accept: Accept,
    certifiable: Collection[GateName],
    report: GateReport,
    versions: Mapping[str, str],
    case: "Case | None",
) -> str:
    """Make the evidence and keep its files; its digest. Equal facts give an equal digest."""
    claim = Claim(
        op=op,
        recipe=recipe,
        base_commit=base,
        bare_base=tree_digest(bare),
        patch_sha256=patch.digest,
        accept=accept,
        certifiable=tuple(sorted(certifiable)),
        versions=dict(versions),
        machine={} if case is None else _machine(case),
    )
    raw = {PATCH_FILE: patch.to_bytes()}
    if case is not None:
        raw |= _measured_files(case)
    files = pack(claim, report, settings=None if case is None else case.settings, raw=raw)
    for data in files.values():
        store.put(data)
    return evidence_digest(files)


def stored_evidence(store: ArtifactStore, digest: str) -> dict[str, bytes]:
    """The files of an evidence. Raises ArtifactMissing when one is not in this store."""
    manifest = store.get(digest)
    try:
        names = decode(Manifest, json.loads(manifest)).files
    except ValueError as error:
        raise ArtifactMissing(f"artifact {digest} is no evidence's manifest: {error}") from error
    return {MANIFEST: manifest, **{name: store.get(sha256) for name, sha256 in names.items()}}


def _machine(case: "Case") -> dict[str, str]:
    last = case.runs[-1]
    facts = {"gpu": last.machine.gpu or "none", "driver": last.machine.driver or "none"}
    return facts | {f"isolation-{name}": text for name, text in last.isolation.items()}


def _measured_files(case: "Case") -> dict[str, bytes]:
    lines = [json.dumps({"record": type(r).__name__, **encode(r)}, separators=(",", ":")) for r in case.records]
    results = {
        f"results-{n}.json": json.dumps(encode(run), sort_keys=True).encode() for n, run in enumerate(case.runs, 1)
    }
    records = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    return {RECORDS_FILE: records, "bundle.json": case.bundle.to_bytes(), **results}

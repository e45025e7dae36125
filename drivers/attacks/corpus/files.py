"""Attacks on what is written: hidden implementations, results folders, evidence, claims."""

import gzip
import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from drivers.attacks import records, trees
from drivers.attacks.corpus.edits import HOST
from drivers.attacks.model import Expected, OnPaper, Refusal, Verdict, Where
from farm.acceptance import Decision, Judgement, decide
from farm.codec import encode
from farm.errors import BundleRefused
from farm.evidence import CLAIM, MANIFEST, MEASURED, Claim, canonical, evidence_digest, pack, verify
from farm.gates import Basis, GateName, GateReport, GateResult, Ruling
from farm.job import Accept
from farm.leak import LeakScan
from farm.measured.ruling import rule
from farm.results import RESULTS, Ended, MachineFacts, PartRun, Results, read_results
from farm.tree import Entry, Mode, sha256

Files = dict[str, bytes]


def _attack(
    name: str,
    what: str,
    where: Where,
    *words: str,
    cheat: Callable[[], str | None],
    twin: Callable[[], str | None],
) -> OnPaper:
    """`cheat` and `twin` give the reason for which they are refused."""

    def verdict(tried: Callable[[], str | None]) -> Verdict:
        began = time.monotonic()
        reason = tried()
        found = () if reason is None else (Refusal(where=where, ruling=Ruling.FAIL, reason=reason),)
        return Verdict(refusals=found, seconds=time.monotonic() - began)

    return OnPaper(
        name=name,
        what=what,
        place="files",
        expected=Expected(where=where, words=words),
        cheat=lambda: verdict(cheat),
        twin=lambda: verdict(twin),
    )


def _leaks(path: str, text: bytes | None) -> str | None:
    """What the scan finds when a box can also read a file at `path`; None: the hidden implementation's text."""
    base = trees.base_of("relu", ())
    data = base.bare.hidden[HOST].data if text is None else text
    visible = {**base.bare.tree, path: Entry(Mode.FILE, data)}
    scan = LeakScan()
    source = [visible[file].data.decode() for file in base.op.source_files]
    findings, _ = scan.workspace(scan.answer(base.bare, base.bare.tree, source), visible)
    return None if not findings else f"{findings[0].path} holds {findings[0].hidden}: {findings[0].detail}"


def _results(change: Callable[[Path], None]) -> str | None:
    """What the reader of a results folder says after `change`."""
    lines = [json.dumps({"record": type(item).__name__, **encode(item)}) for item in records.honest()]
    data = gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0)
    part = PartRun(
        subject=records.SUBJECT,
        part="timing",
        ended=Ended.DONE,
        reason=None,
        seconds=1.0,
        limit_s=60.0,
        file="timing.jsonl.gz",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        records=len(lines),
    )
    machine = MachineFacts(
        python="3.12", gpu="NVIDIA H200", arch="sm_90", memory_bytes=None, driver=None, versions={}
    )
    results = Results(
        bundle="b" * 64, machine=machine, gpu_uuid=None, isolation={}, parts=(part,), started_at=0.0, ended_at=1.0
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "timing.jsonl.gz").write_bytes(data)
        (folder / RESULTS).write_text(json.dumps(encode(results)))
        change(folder)
        try:
            read_results(folder)
        except BundleRefused as refused:
            return str(refused)
    return None


def _faster_records(folder: Path) -> None:
    path = folder / "timing.jsonl.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(gzip.compress(text.replace('"end_ns": 10120', '"end_ns": 10060').encode(), mtime=0))


def _edited_results(folder: Path) -> None:
    table = json.loads((folder / RESULTS).read_text())
    table["parts"][0]["records"] -= 32
    (folder / RESULTS).write_text(json.dumps(table))


def _same_results(folder: Path) -> None:
    table = json.loads((folder / RESULTS).read_text())
    (folder / RESULTS).write_text(json.dumps(table, indent=1))


def _report(claimed: str | None = None) -> GateReport:
    """A gate report with the honest records' gates; `claimed` in place of the measured geomean."""
    gates = rule(records.honest(), records.SETTINGS).gates
    if claimed is not None:
        forged = GateResult(gate=GateName.GEOMEAN, ruling=Ruling.PASS, basis=Basis.MEASURED, summary=claimed)
        gates = (*gates[:2], forged)
    return GateReport(
        gates=gates,
        certificate=None,
        rows_collected=len(records.KEYS),
        rows_expected=len(records.KEYS),
        diagnosis=None,
    )


def _decided(report: GateReport, *, raw: bool) -> str | None:
    measured = rule(records.honest(), records.SETTINGS) if raw else None
    patch = records.SETTINGS.patch_sha256
    made: Decision = decide(report, patch_sha256=patch, accept=Accept.MEASURED, certifiable=(), measured=measured)
    return None if made.judgement is Judgement.LAND else made.reason


def _evidence(change: Callable[[Files], Files]) -> str | None:
    """What the check of an evidence finds after `change`; the commit names the digest of the honest one."""
    claim = Claim(
        op="relu",
        recipe="cutile-rs",
        base_commit="c" * 40,
        bare_base="d" * 64,
        patch_sha256=records.SETTINGS.patch_sha256,
        accept=Accept.MEASURED,
        certifiable=(),
        versions={},
    )
    lines = [json.dumps({"record": type(item).__name__, **encode(item)}) for item in records.honest()]
    raw = {"timing.jsonl": ("\n".join(lines) + "\n").encode()}
    whole = pack(claim, _report(), settings=records.SETTINGS, raw=raw)
    checked = verify(
        change(dict(whole)), patch_sha256=records.SETTINGS.patch_sha256, digest=evidence_digest(whole)
    )
    return None if checked.proven else "; ".join(f"{p.file} {p.what}" for p in checked.problems)


def _altered(name: str, old: bytes, new: bytes) -> Callable[[Files], Files]:
    def changed(files: Files) -> Files:
        return {**files, name: files[name].replace(old, new, 1)}

    return changed


def _resealed(change: Callable[[Files], Files]) -> Callable[[Files], Files]:
    """The change with a manifest that fits it."""

    def changed(files: Files) -> Files:
        new = change(files)
        digests = {name: sha256(data) for name, data in new.items() if name != MANIFEST}
        return {**new, MANIFEST: canonical({"files": digests, "schema": 1})}

    return changed


def _as_it_is(files: Files) -> Files:
    return files


ATTACKS = (
    _attack(
        "reads-the-hidden-answer",
        "Finds a copy of the hidden implementation in what its box can read.",
        Where.LEAK_SCAN,
        "notes/relu.txt",
        HOST,
        cheat=lambda: _leaks("notes/relu.txt", None),
        twin=lambda: _leaks("notes/relu.txt", b"relu: max(x, 0), elementwise\n"),
    ),
    _attack(
        "mutates-raw-records",
        "Halves the times in the records after the run.",
        Where.RESULTS,
        "was changed",
        "not as written",
        cheat=lambda: _results(_faster_records),
        twin=lambda: _results(lambda folder: None),
    ),
    _attack(
        "edits-results",
        "Has results.json speak of fewer records than the run left.",
        Where.RESULTS,
        "holds other records than it says",
        cheat=lambda: _results(_edited_results),
        twin=lambda: _results(_same_results),
    ),
    _attack(
        "types-its-own-geomean",
        "Has a report claim a geomean that its records do not give.",
        Where.EVIDENCE,
        "claims 'measured 1.400",
        "its raw records say",
        cheat=lambda: _decided(_report("measured 1.400 [1.390, 1.410] over 2 configs"), raw=True),
        twin=lambda: _decided(_report(), raw=True),
    ),
    _attack(
        "claims-without-records",
        "Has a report claim to be measured with no records at all.",
        Where.EVIDENCE,
        "no raw records",
        cheat=lambda: _decided(_report(), raw=False),
        twin=lambda: _decided(_report(), raw=True),
    ),
    _attack(
        "alters-evidence",
        "Changes a number in the evidence of a commit.",
        Where.EVIDENCE,
        MEASURED,
        "digest",
        cheat=lambda: _evidence(_altered(MEASURED, b'"ratio":', b'"ratio" :')),
        twin=lambda: _evidence(_as_it_is),
    ),
    _attack(
        "reseals-evidence",
        "Changes what the evidence claims and writes a manifest that fits.",
        Where.EVIDENCE,
        "does not have the digest that the commit names",
        cheat=lambda: _evidence(_resealed(_altered(CLAIM, b"cutile-rs", b"plain-copy"))),
        twin=lambda: _evidence(_resealed(_as_it_is)),
    ),
)

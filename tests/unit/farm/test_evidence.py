"""Evidence: the decision repeats from its files, and no byte of them can be another."""

import gzip
import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.codec import encode
from farm.evidence import CLAIM, GATES, MANIFEST, MEASURED, Claim, canonical, evidence_digest, pack, verify
from farm.gates import (
    Basis,
    Certificate,
    GateName,
    GateReport,
    GateResult,
    RowProof,
    Ruling,
    SignatureProof,
)
from farm.job import Accept
from farm.measured.model import Plan
from farm.measured.records import Phase
from farm.measured.ruling import Record, rule
from tests.unit.farm.measured.builders import SETTINGS, changed, honest, is_row

PATCH, BARE = SETTINGS.patch_sha256, "c" * 64
CLAIM_OF_RELU = Claim(
    op="relu",
    recipe="cutile-rs",
    base_commit="d" * 40,
    bare_base=BARE,
    patch_sha256=PATCH,
    accept=Accept.MEASURED,
    certifiable=tuple(GateName),
    versions={"tileiras": "13.5.37"},
    machine={"gpu": "NVIDIA H200"},
)


def raw(records: list[Record]) -> dict[str, bytes]:
    lines = "".join(json.dumps({"record": type(r).__name__, **encode(r)}) + "\n" for r in records)
    return {"records.jsonl.gz": gzip.compress(lines.encode(), mtime=0), "logs.txt": b"all well\n"}


def report(records: list[Record], gates: tuple[GateResult, ...] | None = None) -> GateReport:
    said = gates if gates is not None else rule(records, SETTINGS).gates
    return GateReport(gates=said, certificate=None, rows_collected=2, rows_expected=2, diagnosis=None)


def packed(records: list[Record] | None = None, gates: tuple[GateResult, ...] | None = None) -> dict[str, bytes]:
    listed = honest() if records is None else records
    return pack(CLAIM_OF_RELU, report(listed, gates), settings=SETTINGS, raw=raw(listed))


FILES = packed()


def test_an_honest_evidence_is_proven_offline() -> None:
    found = verify(FILES, patch_sha256=PATCH, bare_base=BARE, digest=evidence_digest(FILES))
    assert found.proven
    assert found.measured == rule(honest(), SETTINGS)


def test_packing_the_same_again_gives_the_same_digest() -> None:
    assert evidence_digest(packed()) == evidence_digest(FILES)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_altered_byte_is_found_and_its_file_named(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    at = data.draw(st.integers(0, len(FILES[name]) - 1))
    spoiled = bytearray(FILES[name])
    spoiled[at] ^= data.draw(st.integers(1, 255))
    found = verify({**FILES, name: bytes(spoiled)}, patch_sha256=PATCH, digest=evidence_digest(FILES))
    assert not found.proven
    assert name in {problem.file for problem in found.problems}


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_an_altered_byte_is_found_even_without_the_commits_digest(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    at = data.draw(st.integers(0, len(FILES[name]) - 1))
    spoiled = bytearray(FILES[name])
    spoiled[at] ^= data.draw(st.integers(1, 255))
    assert not verify({**FILES, name: bytes(spoiled)}, patch_sha256=PATCH).proven


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_missing_file_is_named(name: str) -> None:
    files = {other: data for other, data in FILES.items() if other != name}
    found = verify(files, patch_sha256=PATCH)
    assert [(p.file, p.what) for p in found.problems] == [(name, "is missing")]


def test_an_added_file_is_named() -> None:
    found = verify({**FILES, "more.jsonl": b""}, patch_sha256=PATCH)
    assert [(p.file, p.what) for p in found.problems] == [("more.jsonl", f"is not listed in {MANIFEST}")]


def test_the_evidence_of_another_patch_or_bare_base_proves_nothing() -> None:
    other = verify(FILES, patch_sha256="b" * 64)
    assert (other.proven, other.problems[0].file) == (False, CLAIM)
    moved = verify(FILES, patch_sha256=PATCH, bare_base="b" * 64)
    assert [(p.file, p.what) for p in moved.problems] == [(CLAIM, "is about another bare base")]


def test_a_claimed_pass_that_the_records_do_not_repeat_is_found() -> None:
    bad = changed(honest(), is_row(Phase.TARGET), calls=0)
    found = verify(packed(bad, rule(honest(), SETTINGS).gates), patch_sha256=PATCH)
    assert not found.proven
    assert "executed" in found.problems[0].what


def test_a_table_that_does_not_follow_from_the_records_is_found() -> None:
    files = {**FILES, MEASURED: canonical(replace(rule(honest(), SETTINGS), ratio=1.4))}
    files = forged(files)
    found = verify(files, patch_sha256=PATCH)
    assert [(p.file, p.what) for p in found.problems] == [(MEASURED, "does not follow from the raw records")]
    assert not verify(files, patch_sha256=PATCH, digest=evidence_digest(FILES)).proven


def forged(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with a manifest made anew."""
    manifest = json.loads(files[MANIFEST])
    manifest["files"] = {n: hashlib.sha256(d).hexdigest() for n, d in files.items() if n != MANIFEST}
    return {**files, MANIFEST: canonical(manifest)}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (CLAIM, b"{}\n"),
        (GATES, b"[" * 5000),
        (CLAIM, FILES[CLAIM].replace(b":", b": ", 1)),
        ("records.jsonl.gz", b"not gzip"),
        ("records.jsonl.gz", FILES["records.jsonl.gz"][:-20]),
        ("records.jsonl.gz", gzip.compress(b"\xff\n", mtime=0)),
        ("records.jsonl.gz", gzip.compress(b'{"record": "Verdict"}\n', mtime=0)),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_raises_nothing(name: str, data: bytes) -> None:
    found = verify(forged({**FILES, name: data}), patch_sha256=PATCH)
    assert [p.file for p in found.problems] == [name]


def test_certified_evidence_needs_no_records() -> None:
    row = RowProof(key="t[0]", same=True, launches=1, difference=None)
    signature = SignatureProof(signature="s", kernel="k", entry="e", same=True, rules=(), difference=None)
    certificate = Certificate(
        op="relu", gpu="sm_90", rows=(row, row), signatures=(signature,), versions={}, patch_sha256=PATCH
    )
    gates = tuple(
        GateResult(gate=name, ruling=Ruling.PASS, basis=Basis.CERTIFIED, summary="certified 2/2")
        for name in GateName
    )
    certified = replace(report([], gates), certificate=certificate)
    claim = replace(CLAIM_OF_RELU, accept=Accept.CERTIFIED)
    assert verify(pack(claim, certified), patch_sha256=PATCH).proven
    assert not verify(pack(CLAIM_OF_RELU, certified), patch_sha256=PATCH).proven, (
        "accepted as measured, and is not"
    )
    alone = replace(certified, certificate=None)
    assert not verify(pack(claim, alone), patch_sha256=PATCH).proven


def test_measurements_by_easier_rules_are_found() -> None:
    easy = replace(SETTINGS, plan=Plan(limit=0.5))
    files = pack(CLAIM_OF_RELU, report(honest()), settings=easy, raw=raw(honest()))
    assert [p.file for p in verify(files, patch_sha256=PATCH).problems] == ["settings.json"]
    assert verify(files, patch_sha256=PATCH, plan=easy.plan).proven


def test_a_measured_claim_without_records_is_not_proven() -> None:
    found = verify(pack(CLAIM_OF_RELU, report(honest())), patch_sha256=PATCH)
    assert "no raw records" in found.problems[0].what


def test_a_raw_file_may_not_take_the_name_of_ours() -> None:
    with pytest.raises(ValueError, match="may not be called gates"):
        pack(CLAIM_OF_RELU, report(honest()), raw={GATES: b""})

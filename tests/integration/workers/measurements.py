"""Bundles of a bench's job, and results as a GPU machine would give them."""

import gzip
import hashlib
import json
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from containers.engine import BoxSpec
from containers.engine.fake_engine import FakeExit
from farm.bundle import Bundle, BundleSubject, GateSettings, OpNames
from farm.codec import encode
from farm.measured.ruling import Record
from farm.orders import LIBRARY
from farm.patch import Patch
from farm.results import RESULTS, Ended, MachineFacts, PartRun, Results
from tests.integration.workers.conversion_bench import Bench, certified, finish, folder, order_of
from tests.unit.farm.measured import builders
from workers.exhibits import PATCH

MACHINE = MachineFacts(
    python="3.12.3", gpu="NVIDIA H200", arch="sm_90", memory_bytes=1 << 37, driver="580.1", versions={"torch": "2"}
)


def certifies_and_builds(spec: BoxSpec) -> FakeExit:
    """A gate box that leaves the library that it built."""
    (folder(spec, "/out") / LIBRARY).write_bytes(lzma.compress(b"library"))
    return finish(spec, certified(order_of(spec).patch_sha256 or ""))


def bundle_of(bench: Bench, job: str | None = None, **changes: object) -> Bundle:
    """The manifest of a bundle of the bench's job."""
    artifacts = bench.ledger.artifacts(job or bench.id, attempt=1)
    names = OpNames(
        source="cutile",
        target="cutile-rs",
        package="minigym",
        package_path="src",
        tests=("tests/ops/test_relu.py",),
        registry="r:r",
        source_module="s",
        target_module="t",
        source_dsl="cuda.tile",
        library_place="l",
        entries=builders.SETTINGS.entries,
        source_kernels=builders.SETTINGS.source_kernels,
    )
    subject = BundleSubject(
        id=job or bench.id,
        op="relu",
        repo="builtin:minigym",
        base="5" * 40,
        tree="t",
        hidden="h",
        patch="p",
        judged="j",
        bare_digest="b",
        judged_digest="j",
        patch_sha256=Patch.from_bytes(bench.store.get(artifacts[PATCH])).digest,
        violations=(),
        names=names,
        library="l",
        shim="s",
        stub="s",
    )
    subject = replace(subject, **changes)  # type: ignore[arg-type]
    return Bundle(
        farm="test",
        recipe="cutile-rs",
        conversion="cutile-rs",
        layout={},
        gates=GateSettings(geomean_at_least=0.95),
        gpu="sm_90",
        versions={"cutile": "0.2.0"},
        subjects=(subject,),
        collector=None,
        files={},
    )


def write_results(
    at: Path,
    bundle: Bundle,
    records: Sequence[Record],
    part: str = "all",
    machine: MachineFacts = MACHINE,
    when: float = 1.0,
) -> Path:
    """A results folder with one part that holds all of the records."""
    at.mkdir(exist_ok=True)
    subject = bundle.subjects[0].id
    own = [replace(record, subject=subject) for record in records]
    lines = [json.dumps({"record": type(record).__name__, **encode(record)}) + "\n" for record in own]
    data = gzip.compress("".join(lines).encode(), mtime=0)
    (at / "rows.jsonl.gz").write_bytes(data)
    run = PartRun(
        subject=subject,
        part=part,
        ended=Ended.DONE,
        reason=None,
        seconds=1.0,
        limit_s=2.0,
        file="rows.jsonl.gz",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        records=len(own),
    )
    results = Results(
        bundle=bundle.digest,
        machine=machine,
        gpu_uuid="u",
        isolation={},
        parts=(run,),
        started_at=0.0,
        ended_at=when,
    )
    (at / RESULTS).write_text(json.dumps(encode(results)))
    return at

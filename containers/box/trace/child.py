"""The process that imports the repo: `python -m containers.box.trace.child REQUEST.json`."""

import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

import pytest

from containers.box.trace.fake_cuda import pretended
from containers.box.trace.gpus import GPUS
from containers.box.trace.plugin import RowPlugin
from containers.box.trace.recorder import Recorder
from containers.box.trace.request import Mode, TraceRequest, read_request
from containers.box.trace.signatures import Specialiser
from containers.box.trace.stack import Whereabouts
from farm.analysis import Launch, Row
from farm.codec import encode

PYTEST_OPTIONS = ("-p", "no:cacheprovider", "-p", "no:faulthandler", "-q", "--no-header", "--tb=short", "-W", "ignore")


def reference(request: TraceRequest) -> int:
    """Trace the source backend and write reference.json. Returns the exit code."""
    repo = Path(request.repo).resolve()
    out = Path(request.out)
    where = Whereabouts(repo, request.tests)
    specialiser = Specialiser(repo=repo, gpu=request.gpu)
    recorder = Recorder(specialiser)
    plugin: RowPlugin[Launch] = RowPlugin(
        request.backend, where, recorder.begin, lambda: (tuple(recorder.launches), None)
    )
    started = time.monotonic()
    with pretended(GPUS[request.gpu]), recorder.installed():
        code = pytest.main([*PYTEST_OPTIONS, *request.tests], plugins=[plugin])
    ran = time.monotonic()
    signatures, failed = specialiser.export(out, Path(request.toolchain) / "cuda/bin/tileirdisasm")
    rows = [
        Row(key=r.key, node=r.node, status=r.status, reason=r.reason, launches=r.launches)
        for r in plugin.records.values()
    ]
    document = {
        "rows": rows,
        "kernels": list(specialiser.kernels.values()),
        "signatures": signatures,
        "versions": {name: importlib.metadata.version(name) for name in ("cuda-tile", "torch")},
    }
    (out / "reference.json").write_text(json.dumps(encode(document)))
    _print_counts(rows, len(signatures), failed, plugin.errors, ran - started, time.monotonic() - ran, int(code))
    return 0


def _print_counts(rows, signatures, failed, errors, ran_s, export_s, code) -> None:
    counts = {status: sum(row.status == status for row in rows) for status in ("traced", "skipped", "failed")}
    print(
        f"rows: {len(rows)} collected, " + ", ".join(f"{n} {s}" for s, n in counts.items())
        + f"; {signatures} signatures, {len(failed)} not exported; {ran_s:.1f} s + {export_s:.1f} s; pytest {code}"
    )
    for line in errors:
        print("not collected:", line)
    for id_, reason in failed.items():
        print("not exported:", id_, reason)
    for row in rows:
        if row.status == "failed":
            print("failed:", row.node, row.reason)


if __name__ == "__main__":
    wanted = read_request(Path(sys.argv[1]))
    os.chdir(wanted.repo)
    sys.exit(reference(wanted))

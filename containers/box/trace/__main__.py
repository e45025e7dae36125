"""`python -m containers.box.trace REQUEST.json`: traces in a child process and prints what came out.

Ends with 0 when the artifact is written, whatever became of the rows; with 1 when nothing could be
collected; with 2 for a malformed request.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from containers.box.trace.gpus import GPUS
from containers.box.trace.journal import Journal, given_up_candidate, given_up_reference, read_journal
from containers.box.trace.request import Mode, TraceRequest, read_request
from farm.analysis import RowStatus
from farm.codec import CodecError, encode

ARTIFACTS = {Mode.REFERENCE: "reference.json", Mode.CANDIDATE: "candidate.json"}
DEATHS = 3  #: so often the child may die before the rest of the rows is given up


def environment(request: TraceRequest, standin: Path) -> dict[str, str]:
    """The whole environment of the child."""
    toolchain, gpu = Path(request.toolchain), GPUS[request.gpu]
    lib = Path(__file__).resolve().parents[3]
    keep = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH") if name in os.environ
    }
    paths = [str(lib), f"{request.repo}/src", request.repo, keep.get("PYTHONPATH", "")]
    return keep | {
        "PYTHONPATH": ":".join(path for path in paths if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(toolchain / "native/lib"),
        "CUDA_TOOLKIT_PATH": str(toolchain / "cuda"),
        "CUTILE_TILEIRAS_PATH": str(toolchain / "native/bin/tileiras-passthrough"),
        "TILEFARM_TILEIRDISASM": str(toolchain / "cuda/bin/tileirdisasm"),
        "TILEFARM_STANDIN_DIR": str(standin),
        "TILEFARM_STANDIN_MAJOR": str(gpu.major),
        "TILEFARM_STANDIN_MINOR": str(gpu.minor),
        "TILEFARM_STANDIN_SMS": str(gpu.sms),
        "DISABLE_FALLBACK": "1",
        "CUTILE_RS_AUTOBUILD": "0",
    }


def trace(request: TraceRequest) -> int:
    """Run the child until it ends by itself or has died too often. Returns the exit code."""
    out = Path(request.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    artifact, journal_file = out / ARTIFACTS[request.mode], out / "rows.jsonl"
    artifact.unlink(missing_ok=True)
    crashed: dict[str, str] = {}
    deadline = time.monotonic() + request.timeout_s
    journal, ended = read_journal(journal_file), "it was not started"
    for death in range(1, DEATHS + 1):
        journal_file.unlink(missing_ok=True)
        ended = _child(request, crashed, deadline)
        journal = read_journal(journal_file)
        if artifact.exists() or not journal.collected:
            break
        if journal.started is None or death == DEATHS or time.monotonic() > deadline:
            reasons = {node: crashed.get(node, f"not run: {ended}") for _, node in journal.collected}
            _give_up(request.mode, artifact, journal, reasons)
            break
        crashed[journal.started] = f"the row killed the process: {ended}"
    for line in journal.uncollected:
        print(f"not collected: {line}")
    if not artifact.exists():
        print(f"nothing was collected: {ended}")
        return 1
    _print_counts(artifact, request.mode)
    return 0


def _child(request: TraceRequest, crashed: dict[str, str], deadline: float) -> str:
    """Run the child once; its output goes to this process's stderr. Returns how it ended."""
    with tempfile.TemporaryDirectory(prefix="standin-") as standin:
        folder = Path(standin)
        (folder / "request.json").write_text(json.dumps(encode(request)))
        (folder / "crashed.json").write_text(json.dumps(crashed))
        argv = [sys.executable, "-m", "containers.box.trace.child", "request.json", "crashed.json"]
        argv[3:] = [str(folder / name) for name in argv[3:]]
        child = subprocess.Popen(
            argv,
            cwd=request.repo,
            env=environment(request, folder),
            stdout=sys.stderr,
            start_new_session=True,
        )
        try:
            code = child.wait(timeout=max(deadline - time.monotonic(), 1.0))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return f"it ran longer than {request.timeout_s:.0f} s"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _give_up(mode: Mode, artifact: Path, journal: Journal, reasons: dict[str, str]) -> None:
    document: object
    if mode is Mode.REFERENCE:
        document = {
            "rows": given_up_reference(journal, reasons),
            "kernels": [],
            "signatures": [],
            "versions": {},
        }
    else:
        document = given_up_candidate(journal, reasons)
    artifact.write_text(json.dumps(encode(document)))


def _print_counts(artifact: Path, mode: Mode) -> None:
    document = json.loads(artifact.read_text())
    rows = document["rows"] if mode is Mode.REFERENCE else document
    counts = Counter(row["status"] for row in rows)
    print(f"rows collected {len(rows)}, " + ", ".join(f"{status} {counts[status]}" for status in RowStatus))
    launches = sum(len(row["launches"]) for row in rows)
    print(
        f"launches {launches}" + (f", signatures {len(document['signatures'])}" if mode is Mode.REFERENCE else "")
    )
    for reason, number in Counter(row["reason"] for row in rows if row["reason"]).items():
        print(f"{number} rows: {reason}")


if __name__ == "__main__":
    try:
        asked = read_request(Path(sys.argv[1]))
    except (CodecError, OSError, IndexError, ValueError) as error:
        print(f"usage: python -m containers.box.trace REQUEST.json ({error})", file=sys.stderr)
        sys.exit(2)
    sys.exit(trace(asked))

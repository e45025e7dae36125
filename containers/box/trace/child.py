"""The process that imports the repo: `python -m containers.box.trace.child REQUEST.json CRASHED.json`.

CRASHED.json maps nodes that must not run again, since they killed an earlier process, to the reason.

It writes `rows.jsonl` as it goes, so that its parent knows which row killed it.
"""

import importlib.metadata
import json
import os
import sys
from pathlib import Path

import pytest
import torch

from containers.box.trace.candidate import DriverRecorder, library_in_place
from containers.box.trace.fake_cuda import pretended
from containers.box.trace.gpus import GPUS
from containers.box.trace.plugin import RowPlugin
from containers.box.trace.recorder import Recorder, in_autograd
from containers.box.trace.request import Mode, TraceRequest, read_request
from containers.box.trace.signatures import Specialiser
from containers.box.trace.stack import Whereabouts
from farm.analysis import CandidateLaunch, CandidateRow, Launch, Row
from farm.codec import encode

PYTEST_OPTIONS = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:faulthandler",
    "-q",
    "--no-header",
    "--tb=no",
    "-W",
    "ignore",
)


#: pytest's ends after which its rows mean something: all passed, some failed, no rows.
_RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def main(request: TraceRequest, crashed: dict[str, str]) -> int:
    """Trace and write reference.json or candidate.json; without rows that could be read, neither."""
    repo = Path(request.repo).resolve()
    out = Path(request.out)
    disassembler = Path(request.toolchain) / "cuda/bin/tileirdisasm"
    specialiser = Specialiser(repo=repo, gpu=request.gpu, out=out, disassembler=disassembler)
    recorder = Recorder(specialiser)
    if request.mode is Mode.REFERENCE:
        traced: RowPlugin[Launch] = RowPlugin(
            backend=request.backend,
            where=Whereabouts(repo, request.tests, in_autograd),
            begin=recorder.begin,
            take=lambda: (tuple(recorder.launches), None),
            launched=lambda: len(recorder.launches),
            must_launch=False,
            journal=out / "rows.jsonl",
            crashed=crashed,
        )
        code = _run(request, recorder, traced)
        if code not in _RAN or traced.void_by_accident:
            return 1
        rows = [Row(**vars(record)) for record in traced.records.values()]
        document = {
            "rows": rows,
            "kernels": tuple(specialiser.kernels.values()),
            "signatures": specialiser.signatures,
            "versions": {name: importlib.metadata.version(name) for name in ("cuda-tile", "torch")},
        }
        _write(out / "reference.json", document)
        _write(out / "refused.json", specialiser.refused)
        return 0
    driver = DriverRecorder(
        repo=repo,
        out=out,
        standin=Path(os.environ["TILEFARM_STANDIN_DIR"]),
        disassembler=disassembler,
        source=recorder,
    )
    recorded: RowPlugin[CandidateLaunch] = RowPlugin(
        backend=request.backend,
        where=Whereabouts(repo, request.tests, in_autograd),
        begin=driver.begin,
        take=driver.take,
        launched=driver.launched,
        must_launch=True,
        journal=out / "rows.jsonl",
        crashed=crashed,
    )
    with library_in_place(request.library):
        code = _run(request, recorder, recorded)
    if code not in _RAN or recorded.void_by_accident:
        return 1
    _write(out / "candidate.json", [CandidateRow(**vars(record)) for record in recorded.records.values()])
    return 0


def _run(request: TraceRequest, recorder: Recorder, plugin: RowPlugin[Launch] | RowPlugin[CandidateLaunch]) -> int:
    # Autograd's first way back makes torch look for GPUs in the driver; no row shall be blamed for that.
    torch.ones(1, requires_grad=True).sum().backward()
    with pretended(GPUS[request.gpu]), recorder.installed():
        return pytest.main([*PYTEST_OPTIONS, *request.tests], plugins=[plugin])


def _write(path: Path, document: object) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(encode(document)))
    partial.rename(path)


if __name__ == "__main__":
    sys.exit(main(read_request(Path(sys.argv[1])), json.loads(Path(sys.argv[2]).read_text())))

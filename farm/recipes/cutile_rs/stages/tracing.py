"""Runs the box's trace program, for the reference and for the candidate."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.analysis import CandidateRow, KernelSource, Row, Signature
from farm.orders import BoxOrder
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.stages.tools import environment, load

#: Begins the trace program's lines about what it could not collect.
UNCOLLECTED = "not collected: "


@dataclass(frozen=True, kw_only=True)
class ReferenceTrace:
    """reference.json."""

    rows: tuple[Row, ...]
    kernels: tuple[KernelSource, ...]
    signatures: tuple[Signature, ...]
    versions: dict[str, str]
    uncollected: tuple[str, ...] = ()  #: test files that could not be collected, each with its reason


def uncollected(output: str) -> tuple[str, ...]:
    """What the trace program says it could not collect, `file: reason` each."""
    marks = (line for line in output.splitlines() if line.startswith(UNCOLLECTED))
    return tuple(dict.fromkeys(line.removeprefix(UNCOLLECTED) for line in marks))


def trace_reference(
    order: BoxOrder, io: BoxIO, repo: Path, tests: Sequence[str], out: Path
) -> ReferenceTrace | ProcessResult:
    """The source backend's rows of the test files, or how the program failed."""
    ended = _run(order, io, repo, tests, out, order.source, "reference", None)
    file = out / "reference.json"
    if ended.exit_code != 0 or not file.exists():
        return ended
    return dataclasses.replace(load(file, ReferenceTrace), uncollected=uncollected(ended.output))


def trace_candidate(
    order: BoxOrder, io: BoxIO, repo: Path, tests: Sequence[str], out: Path, library: Path
) -> tuple[CandidateRow, ...] | ProcessResult:
    """The target backend's rows of the test files, or how the program failed."""
    ended = _run(order, io, repo, tests, out, order.target, "candidate", library)
    file = out / "candidate.json"
    if ended.exit_code != 0 or not file.exists():
        return ended
    return load(file, tuple[CandidateRow, ...])


def _run(
    order: BoxOrder,
    io: BoxIO,
    repo: Path,
    tests: Sequence[str],
    out: Path,
    backend: str,
    mode: str,
    library: Path | None,
) -> ProcessResult:
    out.mkdir(parents=True, exist_ok=True)
    request = out / f"{mode}-request.json"
    request.write_text(
        json.dumps(
            {
                "repo": str(repo),
                "tests": list(tests),
                "backend": backend,
                "mode": mode,
                "gpu": order.gpu,
                "out": str(out),
                "toolchain": str(io.toolchain),
                "library": None if library is None else str(library),
                "timeout_s": order.stage_limit_s * 0.9,
            }
        ),
        encoding="utf-8",
    )
    return io.run(
        (sys.executable, "-P", "-m", "containers.box.trace", str(request)),
        cwd=repo,
        env=environment(io),
        timeout_s=order.stage_limit_s,
    )

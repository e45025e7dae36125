"""Calls `tilefarm-kc`: what it says of a file against the coding rules, and what it compiles."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farm.pipeline.stage import Finding
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.stages.tools import environment

TOOL_LIMIT_S = 300.0


def check_rule(io: BoxIO, path: Path) -> tuple[Finding, ...] | ProcessResult:
    """What the kernel file does against the coding rules, read from its syntax tree."""
    answer = _checked(io, path)
    if isinstance(answer, ProcessResult):
        return answer
    file = str(path.relative_to(io.workspace))
    return tuple(
        Finding(
            file=file,
            line=found["line"],
            column=found["column"],
            construct=found["construct"],
            message=found["message"],
            advice=found["advice"],
        )
        for found in answer["findings"]
    )


def check_host_file(io: BoxIO, path: Path) -> tuple[Finding, ...] | ProcessResult:
    """Device modules in a file of host code: they belong into kernel.rs, where the coding rules are checked."""
    answer = _checked(io, path)
    if isinstance(answer, ProcessResult):
        return answer
    return tuple(
        Finding(
            file=str(path.relative_to(io.workspace)),
            line=module["line"],
            column=None,
            construct=module["name"],
            message="a device module in host code",
            advice="move it into kernel.rs",
        )
        for module in answer["modules"]
    )


def compile_entries(
    io: BoxIO, file: Path, gpu: str, out: Path, entries: Sequence[dict[str, Any]]
) -> list[dict[str, Any]] | ProcessResult:
    """The compile server's results, one an entry record, in their order; or how it failed."""
    out.mkdir(parents=True, exist_ok=True)
    question, answered = io.out / "compile-request.json", io.out / "compile-answer.json"
    answered.unlink(missing_ok=True)
    question.write_text(
        json.dumps({"file": str(file), "gpu": gpu, "out": str(out), "entries": list(entries)}), encoding="utf-8"
    )
    tool = (str(io.toolchain / "native/bin/tilefarm-kc"), "compile", str(question))
    # Into a file: it holds more text than a log keeps.
    argv = ("/bin/sh", "-c", 'exec "$0" "$@" > compile-answer.json', *tool)
    ended = io.run(argv, cwd=io.out, env=environment(io), timeout_s=TOOL_LIMIT_S)
    answer = _answer(ended, answered.read_text(encoding="utf-8") if answered.exists() else "")
    if answer is None:
        return ended
    results: list[dict[str, Any]] = answer["results"]
    return results


def compile_error(file: str, result: dict[str, Any]) -> Finding:
    """The error of a result that has one, at its place in `file`."""
    error = result["error"]
    return Finding(
        file=file,
        line=error.get("line"),
        column=error.get("column"),
        construct=result["id"],
        message=f"{error['kind']}: {error['message']}",
        advice=None,
    )


def _checked(io: BoxIO, path: Path) -> dict[str, Any] | ProcessResult:
    argv = (str(io.toolchain / "native/bin/tilefarm-kc"), "check", str(path))
    ended = io.run(argv, cwd=io.workspace, env=environment(io), timeout_s=TOOL_LIMIT_S)
    answer = _answer(ended, ended.output)
    return ended if answer is None else answer


def _answer(ended: ProcessResult, output: str) -> dict[str, Any] | None:
    """The tool's JSON; None when it did not give one."""
    if ended.timed_out or ended.exit_code not in (0, 1):
        return None
    try:
        answer: dict[str, Any] = json.loads(output[output.find("{") :])
    except json.JSONDecodeError:
        return None
    return answer

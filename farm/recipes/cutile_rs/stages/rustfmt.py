"""rustfmt, where the toolchain has it: lays files out, and says where one is laid out otherwise."""

import re
from collections.abc import Sequence
from pathlib import Path

from farm.pipeline.stage import Finding
from farm.recipes import BoxIO
from farm.recipes.cutile_rs.stages.kc import TOOL_LIMIT_S
from farm.recipes.cutile_rs.stages.tools import environment, finding

_PLACE = re.compile(r"^Diff in (?P<file>.+?):(?P<line>\d+):?$", re.MULTILINE)


def available(io: BoxIO) -> bool:
    """Whether the toolchain has it."""
    return _program(io).exists()


def lay_out(io: BoxIO, files: Sequence[str]) -> None:
    """Rewrite files of the workspace; one that is no Rust stays as it is, its compiler says so better."""
    if files and available(io):
        io.run(
            (str(_program(io)), "--edition", "2024", *files),
            cwd=io.workspace,
            env=environment(io),
            timeout_s=TOOL_LIMIT_S,
        )


def unlike(io: BoxIO, files: Sequence[str]) -> tuple[Finding, ...]:
    """The places in files of the workspace that it would change; none without it."""
    if not files or not available(io):
        return ()
    argv = (str(_program(io)), "--check", "--color", "never", "--edition", "2024", *files)
    ended = io.run(argv, cwd=io.workspace, env=environment(io), timeout_s=TOOL_LIMIT_S)
    if ended.exit_code == 0:
        return ()
    places = [(match["file"], int(match["line"])) for match in _PLACE.finditer(ended.output)]
    if not places:
        return (finding(f"rustfmt: {ended.output.strip()[-300:]}", "correct the syntax", files[0]),)
    return tuple(
        Finding(
            file=_inside(io, file),
            line=line,
            column=None,
            construct=None,
            message="not as rustfmt writes it",
            advice=f"run rustfmt --edition 2024 {_inside(io, file)}",
        )
        for file, line in places[:20]
    )


def _program(io: BoxIO) -> Path:
    return io.toolchain / "rust/bin/rustfmt"


def _inside(io: BoxIO, file: str) -> str:
    path = Path(file)
    return str(path.relative_to(io.workspace)) if path.is_relative_to(io.workspace) else file

"""What stage programs share: the box's tools by name, artifacts as files, trees from folders."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import farm
from farm.capture import read_tree
from farm.codec import decode, encode
from farm.fault import Fault, Owner
from farm.pipeline.stage import Finding, Reply, Verdict
from farm.recipes import BoxIO, ProcessResult
from farm.tree import Entry

T = TypeVar("T")


def environment(io: BoxIO, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a tool in the box: the toolchain, our own packages, nothing else."""
    root = io.toolchain
    own = ":".join(str(root / part) for part in ("venv/bin", "rust/bin", "cuda/bin", "native/bin"))
    return {
        "PATH": f"{own}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(next(iter(farm.__path__))).parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_TOOLKIT_PATH": str((root / "cuda").resolve()),
        **(extra or {}),
    }


def workspace_tree(io: BoxIO) -> dict[str, Entry]:
    """The files of the workspace. Raises PatchRefused for what no tree may hold."""
    return dict(read_tree(io.workspace))


def save(io: BoxIO, name: str, value: Any) -> str:
    """Write an artifact as JSON; its name."""
    path = io.out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(encode(value), indent=1, sort_keys=True), encoding="utf-8")
    return name


def load(path: Path, kind: type[T]) -> T:
    """An artifact. Raises CodecError when it is not what it should be, OSError when it is not there."""
    return decode(kind, json.loads(path.read_text(encoding="utf-8")))


def scratch_copy(io: BoxIO, name: str) -> Path:
    """A copy of the workspace among temporary files: what building leaves must not become part of the patch."""
    copy = Path(tempfile.gettempdir()) / f"tilefarm-{name}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(io.workspace, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    return copy


def finding(message: str, advice: str | None = None, file: str | None = None) -> Finding:
    """A finding about a file as a whole, or about none."""
    return Finding(file=file, line=None, column=None, construct=None, message=message, advice=advice)


def place(found: Finding) -> str:
    """A finding in one line: place, message."""
    where = ":".join(str(part) for part in (found.file, found.line, found.column) if part is not None)
    return f"{where}: {found.message}" if where else found.message


def blocked(verdict: Verdict, owner: Owner, fault: Fault, found: tuple[Finding, ...], summary: str) -> Reply:
    """A failure's reply."""
    return Reply(verdict=verdict, owner=owner, fault=fault, fail_class=None, findings=found, summary=summary)


def tool_failed(tool: str, ended: ProcessResult) -> Reply:
    """The reply for a tool of the box that did not do its work: the environment's failure."""
    tail = "\n".join(ended.output.strip().splitlines()[-6:])
    what = "did not end in time" if ended.timed_out else f"exited {ended.exit_code}"
    return blocked(
        Verdict.BLOCKED,
        Owner.ENV,
        Fault.HANG if ended.timed_out else Fault.ENV,
        (finding(f"{tool} {what}: {tail}", "read the stage's log"),),
        f"{tool} {what}",
    )

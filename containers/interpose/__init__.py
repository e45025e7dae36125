"""Libraries with the exports of a built one: one counts calls and passes them on, one fails them all."""

import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.errors import FarmError

#: Where a shim finds the library to call, and the file to count in (optional).
LIBRARY = "TILEFARM_INTERPOSE_LIBRARY"
COUNTS = "TILEFARM_INTERPOSE_COUNTS"
#: What the exports of a stub return instead of -3 (optional).
RESULT = "TILEFARM_INTERPOSE_RESULT"

_HERE = Path(__file__).parent
_FLAGS = ("-shared", "-fPIC", "-O2", "-fvisibility=default")
_RECORD = struct.Struct("=248sQ")
_MOST = 256  #: exports that a file of counts has room for
_FUNCTION = re.compile(r"^[0-9a-f]+ [TW] ([A-Za-z_]\w*)(?:@@?\w+)?$", re.MULTILINE)
#: Exported by the linker's start files, not by the library's author.
_LINKER = frozenset({"_init", "_fini", "__bss_start", "_edata", "_end"})


@dataclass(frozen=True, kw_only=True)
class Interposed:
    """The two libraries of one built library."""

    shim: Path
    stub: Path
    symbols: tuple[str, ...]  #: exported functions, sorted


class InterposeError(FarmError):
    """The interposed libraries could not be built; see what the compiler or nm said."""


def build(library: Path, out: Path, *, prefix: str = "") -> Interposed:
    """Make `shim.so` and `stub.so` in the folder `out` from the functions of `library` that begin with `prefix`.

    Needs cc and nm. Raises InterposeError when one fails, or when there is no such function or more than 256.
    """
    listed = _run("nm", "-D", "--defined-only", str(library))
    names = {name for name in _FUNCTION.findall(listed) if name.startswith(prefix)} - _LINKER
    symbols = tuple(sorted(names))
    if not symbols or len(symbols) > _MOST:
        raise InterposeError(f"{library} exports {len(symbols)} functions {prefix}*; 1 to {_MOST} are expected")
    out.mkdir(parents=True, exist_ok=True)
    listing = " ".join(f"X({index}, {name})" for index, name in enumerate(symbols))
    with tempfile.TemporaryDirectory(prefix="interpose-") as folder:
        (Path(folder) / "exports.h").write_text(f"#define COUNT {len(symbols)}\n#define EXPORTS(X) {listing}\n")
        for kind in ("shim", "stub"):
            made = Path(folder) / f"{kind}.so"
            _run("cc", *_FLAGS, "-I", folder, "-o", str(made), str(_HERE / f"{kind}.c"), "-ldl")
            os.replace(_beside(made, out), out / f"{kind}.so")
    return Interposed(shim=out / "shim.so", stub=out / "stub.so", symbols=symbols)


def environment(library: Path, counts: Path | None = None) -> dict[str, str]:
    """What a process needs in which a shim stands for `library`."""
    named = {LIBRARY: str(library.resolve())}
    return named if counts is None else named | {COUNTS: str(counts.resolve())}


class Counts:
    """The file in which shims of any number of processes count calls; made empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(_RECORD.size * _MOST))

    def read(self) -> Mapping[str, int]:
        """Calls so far of each export of the shims that were loaded."""
        return read_counts(self.path)


def read_counts(path: Path) -> Mapping[str, int]:
    """What a file of counts holds, read from anywhere."""
    records = _RECORD.iter_unpack(path.read_bytes())
    return {name.rstrip(b"\0").decode(): calls for name, calls in records if name[0]}


def _beside(made: Path, out: Path) -> Path:
    """A copy of `made` on the file system of `out`, so that a rename can put it into place."""
    copy = out / f".{made.name}.{os.getpid()}"
    copy.write_bytes(made.read_bytes())
    copy.chmod(0o755)
    return copy


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InterposeError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        raise InterposeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout

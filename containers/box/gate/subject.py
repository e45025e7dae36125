"""What is judged on a GPU machine, unpacked and ready, and where raw records go."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farm.codec import encode


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One op with one patch, as two trees side by side."""

    id: str  #: e.g. `r-..-3f2a.relu`, or `judge.matmul`
    op: str
    source: str  #: source backend, e.g. `cutile`
    target: str  #: target backend, e.g. `cutile-rs`
    bare: Path  #: the bare base
    patched: Path  #: the bare base plus the patch, with the bare base's tests plus the backend parameter
    package: str  #: import name of the target repo's package
    package_path: str  #: folder to put on the import path, relative to a tree, e.g. `src`
    tests: tuple[str, ...]  #: test files of the op, relative to a tree
    registry: str  #: `module:attribute` of the dict op name -> backend -> function
    source_module: str  #: import name of the source implementation
    target_module: str  #: import name of the target implementation
    source_dsl: str  #: top-level import name of the source language, e.g. `cuda.tile`
    library_place: str  #: where the built library is looked for, relative to a tree
    library: Path  #: the library as built
    shim: Path  #: same exports: counts each call and passes it on
    stub: Path  #: same exports: each returns an error
    entries: tuple[str, ...]  #: device symbols of the candidate's kernels, e.g. `relu_kernel_entry`
    perf: tuple[str, ...] = ()  #: names (globs) of the tests' functions that measure
    benchmark: str | None = None  #: `module:function` to which a perf row gives the function it times
    comparison: str | None = None  #: `module:Class.method` that gets test_fn, ref_fn, kwargs
    environment: dict[str, str] = field(default_factory=dict)  #: for every process, e.g. DISABLE_FALLBACK=1
    target_environment: dict[str, str] = field(
        default_factory=dict
    )  #: where the target runs: its backend by default


def record_line(record: Any) -> str:
    """A record as a line of a file."""
    return json.dumps({"record": type(record).__name__, **encode(record)}, separators=(",", ":")) + "\n"


class Sink:
    """A file of records, one line of JSON each with its type's name as `record`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, record: Any) -> None:
        """Append a dataclass of farm.measured.records; it is on disk when this returns."""
        self._file.write(record_line(record))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

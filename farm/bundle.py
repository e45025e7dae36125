"""What a gate needs on another machine: bundle.json, the manifest of a bundle, and the check of its files.

A bundle is a folder: the manifest, the program `run`, `lib/` (packages), `trees/`, `patches/`, `libs/`.
docs/gates.md says what each file is. Standard library alone: both ends need it.
"""

import hashlib
import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farm.codec import CodecError, decode, encode
from farm.errors import BundleRefused

MANIFEST = "bundle.json"
#: Raised when a manifest means something else than before.
SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class OpNames:
    """What a gate must know of an op by name. `containers.box.gate.subject.Subject` says what each means."""

    source: str
    target: str
    package: str
    package_path: str
    tests: tuple[str, ...]
    registry: str
    source_module: str
    target_module: str
    source_dsl: str
    library_place: str
    entries: tuple[str, ...]
    source_kernels: tuple[str, ...] = ()  #: functions that are the source's kernels
    perf: tuple[str, ...] = ()
    benchmark: str | None = None
    comparison: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    target_environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """The recipe's `[gates]`, as far as a ruling depends on it."""

    geomean_at_least: float  #: lower bound of the speedup's interval that passes, ratio


@dataclass(frozen=True, kw_only=True)
class BundleSubject:
    """One op with one patch. Paths are those of the bundle."""

    id: str  #: `<job>`, or `judge.<op>` for what has landed
    op: str
    repo: str  #: URL, path or `builtin:NAME` of the target repo, for people
    base: str  #: full commit id
    tree: str  #: archive of the base commit without withheld files
    hidden: str  #: patch from that tree to the bare base
    patch: str  #: patch from the bare base to the conversion, as captured or landed
    judged: str  #: patch from the bare base to what is judged: the same with the bare base's own tests
    bare_digest: str  #: `tree_digest` of the bare base as unpacked
    judged_digest: str  #: `tree_digest` of the judged tree as unpacked
    patch_sha256: str  #: `Patch.digest` of `patch`
    violations: tuple[str, ...]  #: what a landed implementation does beyond the change set, a sentence each
    names: OpNames
    library: str  #: the library as built, xz
    shim: str  #: counts calls, xz
    stub: str  #: fails each call, xz


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """bundle.json."""

    farm: str  #: version of the farm that wrote it
    recipe: str
    conversion: str
    layout: dict[str, Any]  #: the recipe's table `[layout]`
    gates: GateSettings
    gpu: str  #: architecture that was compiled for, e.g. `sm_90`; `cpu`: nothing of it needs a GPU
    versions: dict[str, str]  #: of the toolchain that built the libraries
    subjects: tuple[BundleSubject, ...]
    collector: str | None  #: library that records device activity, xz
    files: dict[str, str]  #: sha256 of every file but the manifest, by path
    schema: int = SCHEMA

    def to_bytes(self) -> bytes:
        """The manifest's text: equal bundles give equal bytes."""
        return json.dumps(encode(self), indent=1, sort_keys=True).encode()

    @property
    def digest(self) -> str:
        """Hexadecimal sha256 of the manifest, which names every other file's: the bundle's identity."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def parse_bundle(data: bytes) -> Bundle:
    """The manifest that bytes hold. Raises BundleRefused for one that is none or of another schema."""
    try:
        table = json.loads(data)
        schema = table.get("schema") if isinstance(table, dict) else None
        if schema != SCHEMA:
            raise BundleRefused(f"{MANIFEST} has schema {schema}, this farm reads {SCHEMA}; write the bundle anew")
        bundle = decode(Bundle, table)
    except (CodecError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise BundleRefused(f"{MANIFEST} is no manifest: {error}") from error
    if bundle.to_bytes() != data:
        raise BundleRefused(f"{MANIFEST} is not as the farm wrote it; write the bundle anew")
    return bundle


def read_bundle(folder: Path) -> Bundle:
    """The manifest of a bundle whose files are all as it says. Raises BundleRefused naming those that are not."""
    try:
        bundle = parse_bundle((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise BundleRefused(f"{folder} holds no {MANIFEST} that can be read: {error.strerror}") from error
    wrong = list(altered(folder, bundle.files))
    if wrong:
        raise BundleRefused(f"{folder} is not as it was written: {'; '.join(wrong[:5])}; copy it again")
    return bundle


def altered(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with a folder's files, a sentence each: changed, missing, or not in the manifest."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    there = {str(path.relative_to(folder)): path for path in paths}
    for name in sorted(there.keys() | files.keys()):
        if name == MANIFEST:
            continue
        if name not in there:
            yield f"{name} is missing"
        elif name not in files:
            yield f"{name} is not part of it"
        elif there[name].is_symlink() or hashlib.sha256(there[name].read_bytes()).hexdigest() != files[name]:
            yield f"{name} was changed"


def unpacked(folder: Path, name: str) -> bytes:
    """The content of one of the bundle's xz files."""
    return lzma.decompress((folder / name).read_bytes())

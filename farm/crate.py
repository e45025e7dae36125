"""Build a target repo's cdylib inside a box: dependencies from a cache, its own code always anew.

Cargo trusts modification times and keeps absolute paths in its records, so a copied `target/` can pass for a
build that never happened. Hence three safeguards: the cache never holds the crate itself, its records are
removed and its root file is touched before each build, and a library that cargo calls fresh is refused.
"""

import hashlib
import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farm.pipeline.stage import Finding
from farm.recipes import BoxIO

#: Larger files of the cache are linked, smaller ones (cargo's records, which it may rewrite) are copied.
LINK_FROM_BYTES = 64 << 10

#: A build takes about ten seconds; this is for a machine under load.
BUILD_TIMEOUT_S = 300.0

CARGO_BUILD = ("build", "--release", "--offline", "-q", "--message-format=json")


@dataclass(frozen=True, kw_only=True)
class CrateNames:
    """What a crate's manifest says about its own products."""

    package: str  #: package name, as in cargo's records
    library: str  #: name of the library target: lib<library>.so
    root: str  #: the library's root file, relative to the crate


@dataclass(frozen=True, kw_only=True)
class Build:
    """How a build ended."""

    library: Path | None  #: the library that was built now; None: there is none
    findings: tuple[Finding, ...]  #: errors in the compiler's order; empty when built
    seconds: float
    timed_out: bool
    environment: bool = False  #: the failure is the machine's, not the code's


def names(manifest: bytes) -> CrateNames:
    """The names in a Cargo.toml. Raises tomllib.TOMLDecodeError or KeyError for one that has no package."""
    data = tomllib.loads(manifest.decode())
    package = data["package"]["name"]
    lib = data.get("lib", {})
    return CrateNames(
        package=package,
        library=lib.get("name", package.replace("-", "_")),
        root=lib.get("path", "src/lib.rs"),
    )


#: What of a manifest decides how its dependencies are compiled and locked.
_DECISIVE = (
    "dependencies",
    "build-dependencies",
    "target",
    "features",
    "profile",
    "patch",
    "replace",
    "workspace",
)


def warm_key(manifest: bytes, lock: bytes | None, *, rustc: str, python_key: str) -> str:
    """Name of the compiled dependencies for this manifest, lock file, compiler and CUDA headers.

    Manifests that differ in other things, such as comments or the library's path, share them.
    Raises as `names` does.
    """
    data = tomllib.loads(manifest.decode())
    package = data["package"]
    decisive = {name: data.get(name) for name in _DECISIVE}
    for name in ("name", "version", "edition", "resolver", "rust-version", "links"):
        decisive[f"package.{name}"] = package.get(name)
    digest = hashlib.sha256(b"warm 1")
    for part in (json.dumps(decisive, sort_keys=True).encode(), lock or b"", rustc.encode(), python_key.encode()):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:16]


def find_warm(toolchain: Path, crate: Path) -> Path | None:
    """The compiled dependencies for the crate at `crate`, or None when there are none."""
    record = json.loads((toolchain / "toolchain.json").read_text())
    manifest, lock_file = (crate / "Cargo.toml").read_bytes(), crate / "Cargo.lock"
    lock = lock_file.read_bytes() if lock_file.is_file() else None
    for keyed_by in (lock, None):
        key = warm_key(manifest, keyed_by, rustc=record["versions"]["rustc"], python_key=record["python_key"])
        warm = (toolchain / "warm" / key).resolve()
        # A lock file that `place` has put there belongs to dependencies keyed without one.
        if warm.is_dir() and lock in (keyed_by, (warm / "Cargo.lock").read_bytes()):
            return warm
    return None


def build_env(toolchain: Path) -> dict[str, str]:
    """The whole environment of cargo in a box; its paths are those the dependencies were compiled with."""
    rust, cuda = (toolchain / "rust").resolve(), (toolchain / "cuda").resolve()
    return {
        "PATH": f"{rust}/bin:{cuda}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "CARGO_HOME": str((toolchain / "cargo-home").resolve()),
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TERM_COLOR": "never",
        "CARGO_INCREMENTAL": "0",
        "CUDA_TOOLKIT_PATH": str(cuda),
    }


def place(crate: Path, warm: Path) -> None:
    """Give the crate the compiled dependencies and, where it has none, the lock file.

    Large files become links into the cache, which a box sees read-only: cargo cannot write through them.
    """
    target = crate / "target"
    if not target.exists():
        _mirror(warm / "target", target)
    lock = crate / "Cargo.lock"
    if not lock.exists():
        shutil.copyfile(warm / "Cargo.lock", lock)


def forget_own(target: Path, crate_names: CrateNames) -> None:
    """Remove the crate's own products and records from a `target` folder; dependencies stay."""
    release = target / "release"
    package, library = crate_names.package, crate_names.library
    for folder in (release / ".fingerprint", release / "build"):
        for path in folder.glob(f"{package}-*"):
            if path.name[len(package) + 1 :].isalnum():
                shutil.rmtree(path, ignore_errors=True)
    for path in (*release.glob(f"lib{library}.*"), *release.glob(f"deps/*{library}*")):
        stem = path.name.removeprefix("lib").split(".")[0]
        if stem == library or stem.rpartition("-")[0] == library:
            path.unlink(missing_ok=True)


def build(io: BoxIO, crate: Path, *, timeout_s: float = BUILD_TIMEOUT_S) -> Build:
    """Compile the crate at `crate` (a folder in the workspace) and nothing else; its code is always compiled."""
    warm = find_warm(io.toolchain, crate)
    if warm is None:
        return _cannot(
            "no compiled dependencies for this Cargo.toml",
            "the farm compiles them before a box starts; a patch may not change Cargo.toml or Cargo.lock",
        )
    crate_names = names((crate / "Cargo.toml").read_bytes())
    place(crate, warm)
    forget_own(crate / "target", crate_names)
    (crate / crate_names.root).touch()
    ended = io.run(
        (str(io.toolchain / "rust" / "bin" / "cargo"), *CARGO_BUILD),
        cwd=crate,
        env=build_env(io.toolchain),
        timeout_s=timeout_s,
    )
    messages = tuple(_messages(ended.output))
    if ended.exit_code == 0 and not ended.timed_out:
        return _built(messages, crate_names, ended.seconds)
    findings = tuple(
        _finding(message["message"], crate, io.workspace) for message in messages if _is_error(message)
    )
    if not findings:
        tail = " ".join(line for line in ended.output.splitlines()[-12:] if not line.startswith("{"))
        what = (
            f"cargo did not end within {timeout_s:.0f} s" if ended.timed_out else f"cargo exited {ended.exit_code}"
        )
        findings = (_plain(f"{what}: {tail}".rstrip(": "), None),)
    return Build(library=None, findings=findings, seconds=ended.seconds, timed_out=ended.timed_out)


def _built(messages: tuple[dict[str, Any], ...], crate_names: CrateNames, seconds: float) -> Build:
    for message in messages:
        if message.get("reason") != "compiler-artifact" or message["target"]["name"] != crate_names.library:
            continue
        library = next((Path(name) for name in message["filenames"] if name.endswith(".so")), None)
        if message["fresh"]:
            return _cannot("cargo took an old library for a new one", "remove the crate's target folder")
        if library is not None:
            return Build(library=library, findings=(), seconds=seconds, timed_out=False)
    return _cannot(
        f"cargo built no lib{crate_names.library}.so", 'the crate needs `crate-type = ["cdylib"]` under [lib]'
    )


def _messages(output: str) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def _is_error(message: dict[str, Any]) -> bool:
    return (
        message.get("reason") == "compiler-message"
        and message["message"]["level"] == "error"
        and not message["message"]["message"].startswith("aborting due to")
    )


def _finding(message: dict[str, Any], crate: Path, workspace: Path) -> Finding:
    """The compiler's error at the place in the workspace it is about, macros followed to their call."""
    helps = [child["message"] for child in message.get("children", ()) if child["level"] in ("help", "note")]
    span = next((item for item in message["spans"] if item["is_primary"]), None)
    while span is not None:
        path = Path(os.path.normpath(crate / span["file_name"]))
        if path.is_relative_to(workspace):
            code = message.get("code") or {}
            label = f"[{code['code']}] " if code.get("code") else ""
            return Finding(
                file=str(path.relative_to(workspace)),
                line=span["line_start"],
                column=span["column_start"],
                construct="\n".join(line["text"] for line in span["text"][:3]).strip() or None,
                message=label + message["message"],
                advice=helps[0] if helps else None,
            )
        span = (span.get("expansion") or {}).get("span")
    return _plain(message["message"], helps[0] if helps else None)


def _plain(message: str, advice: str | None) -> Finding:
    return Finding(file=None, line=None, column=None, construct=None, message=message, advice=advice)


def _cannot(message: str, advice: str) -> Build:
    return Build(library=None, findings=(_plain(message, advice),), seconds=0.0, timed_out=False, environment=True)


def _mirror(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in entries:
            place_at = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                _mirror(Path(entry.path), place_at)
            elif entry.stat().st_size >= LINK_FROM_BYTES:
                place_at.symlink_to(entry.path)
            else:
                shutil.copy2(entry.path, place_at)

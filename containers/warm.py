"""Compile the dependencies of a target repo's crate once, for all its jobs.

The result, `<toolchain>/warm/<key>/`, holds `target/` and `Cargo.lock`; the crate's own code takes no part in
it. The crates it needs are left in the toolchain's CARGO_HOME, so that boxes build without a network.
"""

import os
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from containers.toolchain import Toolchain
from containers.toolchain.parts import locked, publish, step, sweep
from farm import crate
from farm.errors import ConfigurationError

_ADVICE = "the crates' registry must be reachable once, and clang installed (apt install clang libclang-dev)"


class Warm(NamedTuple):
    """Compiled dependencies of a crate."""

    key: str  #: of manifest, lock file, compiler and CUDA headers
    path: Path  #: folder with `target/` and `Cargo.lock`


def ensure_warm(
    files: Mapping[str, bytes], toolchain: Toolchain, env: Mapping[str, str], say: Callable[[str], None]
) -> Warm:
    """The compiled dependencies of the crate made of `files` (paths inside it); two minutes at first.

    Raises ConfigurationError for a manifest that cannot be read, ToolchainMissing when cargo fails.
    """
    manifest = files.get("Cargo.toml")
    if manifest is None:
        raise ConfigurationError("the target crate has no Cargo.toml")
    try:
        crate_names = crate.names(manifest)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as error:
        raise ConfigurationError(f"the target crate's Cargo.toml cannot be read: {error}") from error
    key = crate.warm_key(
        manifest,
        files.get("Cargo.lock"),
        rustc=toolchain.record.versions["rustc"],
        python_key=toolchain.record.python_key,
    )
    final = toolchain.warm / key
    if not final.exists():
        with locked(toolchain.warm, say):
            sweep(toolchain.warm)
            publish(final, lambda folder: _make(folder, files, crate_names, toolchain, env, say))
    return Warm(key=key, path=final)


def _make(
    folder: Path,
    files: Mapping[str, bytes],
    crate_names: crate.CrateNames,
    toolchain: Toolchain,
    env: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    say(f"compiling the dependencies of {crate_names.package} (once; about two minutes)")
    work = folder / "crate"
    _dummy(work, files, crate_names)
    build_env = {
        **crate.build_env(toolchain.root),
        "HOME": env.get("HOME", "/"),
        "CARGO_NET_OFFLINE": "false",
        "CARGO_TARGET_DIR": str(folder / "target"),
    }
    locked_option = ("--locked",) if "Cargo.lock" in files else ()
    step(
        (str(toolchain.rust / "bin" / "cargo"), "build", "--release", "-q", *locked_option),
        env=build_env,
        cwd=work,
        doing=f"compiling the dependencies of {crate_names.package}",
        advice=_ADVICE,
    )
    crate.forget_own(folder / "target", crate_names)
    shutil.copyfile(work / "Cargo.lock", folder / "Cargo.lock")
    shutil.rmtree(work)
    _readable(folder)


def _dummy(work: Path, files: Mapping[str, bytes], crate_names: crate.CrateNames) -> None:
    """The crate's manifest with empty code: nothing of the target repo's own runs or is compiled."""
    work.mkdir()
    for name in ("Cargo.toml", "Cargo.lock"):
        if name in files:
            (work / name).write_bytes(files[name])
    data: dict[str, Any] = tomllib.loads(files["Cargo.toml"].decode())
    sources = {crate_names.root: ""}
    if isinstance(data["package"].get("build"), str) or "build.rs" in files:
        sources[data["package"].get("build") or "build.rs"] = "fn main() {}\n"
    for binary in data.get("bin", ()):
        sources[binary.get("path") or f"src/bin/{binary['name']}.rs"] = "fn main() {}\n"
    for name, text in sources.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)


def _readable(folder: Path) -> None:
    """Boxes run as another user."""
    for parent, _, names in os.walk(folder):
        os.chmod(parent, 0o755)
        for name in names:
            path = os.path.join(parent, name)
            os.chmod(path, os.stat(path).st_mode | 0o444)

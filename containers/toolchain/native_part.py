"""Native helpers: each folder of `containers/native` with a Cargo.toml or Makefile, built once per content.

The rule that a helper obeys is in containers/native/README.md.
"""

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from containers.toolchain.parts import NOT_SOURCE, folder_bytes, key_of, step
from farm.errors import ToolchainMissing


def helpers(sources: Path) -> tuple[Path, ...]:
    """The helpers' folders, by name."""
    if not sources.is_dir():
        return ()
    return tuple(
        folder
        for folder in sorted(sources.iterdir())
        if (folder / "Cargo.toml").is_file() or (folder / "Makefile").is_file()
    )


def key(folder: Path, compilers: Iterable[bytes]) -> str:
    """Key of a helper's build: its sources and the compilers."""
    return key_of([b"native part 1", *compilers, *folder_bytes(folder)])


def make(folder: Path, *, source: Path, build: Path, cuda: Path, env: Mapping[str, str]) -> None:
    """Build `source` and install it into `folder` as bin/ and lib/; `build` may keep what speeds up the next.

    Raises ToolchainMissing with the compiler's words.
    """
    env = {**env, "CUDA_TOOLKIT_PATH": str(cuda)}
    if (source / "Cargo.toml").is_file():
        _cargo(folder, source, build, env)
    else:
        _make(folder, source, build, env)
    if not any(path.is_file() for path in folder.rglob("*")):
        raise ToolchainMissing(f"building {source.name} installed no file; see containers/native/README.md")


def _cargo(folder: Path, source: Path, build: Path, env: Mapping[str, str]) -> None:
    text = step(
        ("cargo", "build", "--release", "--locked", "--message-format=json"),
        env={**env, "CARGO_TARGET_DIR": str(build)},
        cwd=source,
        doing=f"building {source.name}",
        advice="clang and libclang-dev are needed (apt install clang libclang-dev)",
    )
    binaries = folder / "bin"
    binaries.mkdir()
    for executable in executables(text):
        shutil.copy2(executable, binaries / executable.name)


def executables(messages: str) -> tuple[Path, ...]:
    """The programs that cargo's JSON messages name."""
    found = []
    for line in messages.splitlines():
        if line.startswith("{"):
            message = json.loads(line)
            if message.get("reason") == "compiler-artifact" and message.get("executable"):
                found.append(Path(message["executable"]))
    return tuple(found)


def _make(folder: Path, source: Path, build: Path, env: Mapping[str, str]) -> None:
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(source, build, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    step(
        ("make", "install", f"PREFIX={folder}"),
        env=env,
        cwd=build,
        doing=f"building {source.name}",
        advice="a C compiler and make are needed (apt install build-essential)",
    )
    shutil.rmtree(build)


def crate_versions(sources: Path, crate: str) -> tuple[str, ...]:
    """Versions of `crate` that the helpers' lock files pin, oldest name first."""
    found: set[str] = set()
    for lock in sources.glob("*/**/Cargo.lock"):
        if not NOT_SOURCE.intersection(lock.relative_to(sources).parts):
            found.update(re.findall(rf'name = "{re.escape(crate)}"\nversion = "([^"]+)"', lock.read_text()))
    return tuple(sorted(found))

"""Install the toolchain: parts named by content, put together as a folder named by the whole's digest.

ROOT/
  <digest>/           what the seams page describes; small, links to the parts
  current             link to the newest
  parts/python-<key>/ venv and cuda (7 GB)
  parts/native-<helper>-<key>/
  cargo-home/ warm/   shared by all digests; grow only
  build/              cargo's work folders of the native helpers
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from containers.toolchain import MARKER, Record, Toolchain, load, native_part, python_part
from containers.toolchain.parts import key_of, locked, point, publish, step, sweep
from containers.toolchain.visible import prepare_index
from farm.codec import encode
from farm.errors import ToolchainMissing

RUST_ADVICE = "install Rust 1.85 or newer with rustup, so that `rustc --version` answers"

#: What cargo finds in CARGO_HOME: a box has no network and must not wait for one.
CARGO_CONFIG = "[net]\noffline = true\n"


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a toolchain is made from."""

    lock: Path  #: pinned Python packages
    native: Path  #: folder of the native helpers' folders
    interpreter: Path  #: base Python of the venv

    @classmethod
    def packaged(cls) -> "Sources":
        """The project's own."""
        here = Path(__file__).parent
        return cls(
            lock=here / "requirements.txt",
            native=here.parent / "native",
            interpreter=python_part.base_interpreter(),
        )


@dataclass(frozen=True, kw_only=True)
class Done:
    """What an install did."""

    toolchain: Toolchain
    seconds: dict[str, float]  #: per part that was made now; empty when everything was there


def install(root: Path, sources: Sources, env: Mapping[str, str], say: Callable[[str], None]) -> Done:
    """Make what is missing under `root` and let `current` lead to it. Raises ToolchainMissing."""
    rustc = step(
        ("rustc", "--version"), env=env, cwd=Path("/"), doing="looking for Rust", advice=RUST_ADVICE
    ).strip()
    sysroot = step(
        ("rustc", "--print", "sysroot"), env=env, cwd=Path("/"), doing="looking for Rust", advice=RUST_ADVICE
    ).strip()
    root.mkdir(parents=True, exist_ok=True)
    root = root.resolve()
    with locked(root, say):
        sweep(root / "parts")
        sweep(root)
        maker = _Maker(root=root, sources=sources, env=env, say=say, rustc=rustc, seconds={})
        python = maker.python()
        maker.cargo_home(python / "cuda")
        natives = maker.natives(python / "cuda")
        digest = key_of(
            [b"toolchain 1", rustc.encode(), sysroot.encode(), *(p.name.encode() for p in (python, *natives))]
        )
        publish(root / digest, lambda folder: maker.assemble(folder, digest, python, natives, Path(sysroot)))
        point(root / "current", digest)
    toolchain = load(root / digest)
    prepare_index(toolchain, say)
    return Done(toolchain=toolchain, seconds=maker.seconds)


@dataclass(frozen=True, kw_only=True)
class _Maker:
    """The steps of one install."""

    root: Path
    sources: Sources
    env: Mapping[str, str]
    say: Callable[[str], None]
    rustc: str
    seconds: dict[str, float]

    def python(self) -> Path:
        key = python_part.key(self.sources.lock, self.sources.interpreter)
        return self._part(
            f"python-{key}",
            "Python packages (7 GB, about a minute)",
            lambda folder: python_part.make(
                folder, lock=self.sources.lock, interpreter=self.sources.interpreter, env=self.env
            ),
        )

    def cargo_home(self, cuda: Path) -> None:
        home = self.root / "cargo-home"
        home.mkdir(exist_ok=True)
        config = home / "config.toml"
        if not config.is_file() or config.read_text() != CARGO_CONFIG:
            config.write_text(CARGO_CONFIG)
        (self.root / "warm").mkdir(exist_ok=True)

    def natives(self, cuda: Path) -> tuple[Path, ...]:
        env = {**self.env, "CARGO_HOME": str(self.root / "cargo-home"), "CARGO_NET_OFFLINE": "false"}
        parts = []
        for source in native_part.helpers(self.sources.native):
            key = native_part.key(source, (self.rustc.encode(), cuda.parent.name.encode()))

            def make(folder: Path, source: Path = source) -> None:
                native_part.make(
                    folder, source=source, build=self.root / "build" / source.name, cuda=cuda, env=env
                )

            parts.append(self._part(f"native-{source.name}-{key}", f"native helper {source.name}", make))
        return tuple(parts)

    def assemble(self, folder: Path, digest: str, python: Path, natives: tuple[Path, ...], sysroot: Path) -> None:
        for name in ("venv", "cuda"):
            (folder / name).symlink_to(Path("..") / "parts" / python.name / name)
        for name in ("cargo-home", "warm"):
            (folder / name).symlink_to(Path("..") / name)
        (folder / "rust").symlink_to(sysroot.resolve())
        (folder / "native").mkdir()
        for part in natives:
            shutil.copytree(part, folder / "native", symlinks=True, dirs_exist_ok=True)
        record = Record(
            digest=digest, python_key=python.name.removeprefix("python-"), versions=self._versions(python)
        )
        (folder / MARKER).write_text(json.dumps(encode(record), indent=2, sort_keys=True) + "\n")

    def _versions(self, python: Path) -> dict[str, str]:
        names = {"torch": "torch", "cuda-tile": "cuda-tile", "tileiras": "nvidia-cuda-tileiras"}
        text = step(
            python_part.versions_command(python / "venv" / "bin" / "python", tuple(names.values())),
            env=self.env,
            cwd=python,
            doing="reading the packages' versions",
            advice="remove the toolchain folder and install again",
        )
        installed = json.loads(text)
        cutile = native_part.crate_versions(self.sources.native, "cutile-compiler")
        return {
            **{ours: installed[theirs] for ours, theirs in names.items()},
            "rustc": self.rustc.split()[1],
            "cutile": ", ".join(cutile) or "none",
        }

    def _part(self, name: str, what: str, make: Callable[[Path], None]) -> Path:
        final = self.root / "parts" / name
        if final.exists():
            return final
        self.say(f"installing {what}")
        start = time.monotonic()
        publish(final, make)
        self.seconds[what] = time.monotonic() - start
        return final


def prune(root: Path, say: Callable[[str], None]) -> None:
    """Remove toolchains that `current` does not lead to, and parts that no toolchain uses."""
    current = (root / "current").resolve()
    if not (current / MARKER).is_file():
        raise ToolchainMissing(f"no toolchain is current under {root}; nothing was removed")
    with locked(root, say):
        record = load(current).record
        keep = {f"python-{record.python_key}"}
        for folder in root.iterdir():
            if (folder / MARKER).is_file() and folder.resolve() != current:
                say(f"removing {folder.name}")
                shutil.rmtree(folder)
        for part in (root / "parts").iterdir():
            if part.name not in keep and not part.name.startswith("native-"):
                say(f"removing {part.name}")
                shutil.rmtree(part)
        shutil.rmtree(root / "build", ignore_errors=True)

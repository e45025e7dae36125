"""The conversion toolchain: where it lies, what it holds, how to find it.

Installing is `containers.toolchain.install`; this module only reads.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from farm.codec import CodecError, decode
from farm.errors import ToolchainMissing

#: File that makes a folder a toolchain; written last.
MARKER = "toolchain.json"


@dataclass(frozen=True, kw_only=True)
class Record:
    """toolchain.json."""

    digest: str  #: of the lock file, the native sources and the compilers
    python_key: str  #: of the venv alone; names what compiled crates depend on
    versions: dict[str, str]  #: torch, cuda-tile, tileiras, rustc, cutile


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """An installed toolchain. All paths are free of links up to its own folder."""

    root: Path  #: the folder that is named by the digest
    record: Record

    @property
    def python(self) -> Path:
        """Interpreter with torch, cuda-tile, pytest, numpy, cffi."""
        return self.root / "venv" / "bin" / "python"

    @property
    def cuda(self) -> Path:
        """CUDA_TOOLKIT_PATH, resolved: compiled crates remember it."""
        return (self.root / "cuda").resolve()

    @property
    def rust(self) -> Path:
        """The Rust toolchain's own folder, resolved."""
        return (self.root / "rust").resolve()

    @property
    def cargo_home(self) -> Path:
        """CARGO_HOME, resolved; offline by its own configuration."""
        return (self.root / "cargo-home").resolve()

    @property
    def warm(self) -> Path:
        """Folder of compiled crate dependencies, resolved."""
        return (self.root / "warm").resolve()

    def mount_folders(self) -> tuple[Path, ...]:
        """Every folder that a box needs at its own path: this one, what its links lead to, Python's home.

        Python's home is left out when it lies under /usr, which a box has anyway.
        """
        linked = {path.resolve() for path in self.root.iterdir() if path.is_symlink()}
        interpreter = self._interpreter
        if interpreter.is_relative_to("/usr"):
            return (self.root, *sorted(linked))
        return (self.root, *sorted(linked | {interpreter}))

    def masked_folders(self) -> tuple[Path, ...]:
        """Folders inside the mounted ones that a box sees empty: it needs none of it, and a scan is spared it."""
        home = self._interpreter
        packages = () if home.is_relative_to("/usr") else (home / "lib").glob("python3*/site-packages")
        return tuple(sorted(path for path in (self.rust / "share", *packages) if path.is_dir()))

    @property
    def _interpreter(self) -> Path:
        """Home of the Python that the venv was made from."""
        return self.python.resolve().parent.parent


def default_root(data_home: Path) -> Path:
    """Folder that holds all toolchains of this user."""
    return data_home / "tilefarm" / "toolchain"


def load(path: Path) -> Toolchain:
    """The toolchain at `path` (a folder or a link to one). Raises ToolchainMissing, saying what is absent."""
    root = path.resolve()
    marker = root / MARKER
    if not marker.is_file():
        raise ToolchainMissing(
            f"no conversion toolchain at {path}; run `farm toolchain install` "
            "or let TILEFARM_TOOLCHAIN name an installed one"
        )
    try:
        record = decode(Record, json.loads(marker.read_text()))
    except (CodecError, json.JSONDecodeError) as error:
        raise ToolchainMissing(
            f"{marker} cannot be read ({error}); run `farm toolchain install` to make it anew"
        ) from error
    toolchain = Toolchain(root=root, record=record)
    needed = {
        "venv": toolchain.python,
        "cuda": toolchain.cuda / "bin" / "tileiras",
        "rust": toolchain.rust / "bin" / "cargo",
    }
    gone = sorted(name for name, file in needed.items() if not file.exists())
    if gone:
        raise ToolchainMissing(
            f"the toolchain at {root} lost its {', '.join(gone)}; run `farm toolchain install` to repair it"
        )
    return toolchain

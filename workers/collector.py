"""The library that records device activity, built on this host from the farm's own source."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from containers.toolchain import Toolchain, native_part
from containers.toolchain.parts import publish

NAME = "libtilefarm_collector.so"
_NATIVE = Path(native_part.__file__).parent.parent / "native"


def collector_library(toolchain: Toolchain, folder: Path, environ: Mapping[str, str]) -> bytes:
    """Its bytes; built once for each content of its source and kept in `folder`. Raises ToolchainMissing."""
    source = _NATIVE / "collector"

    def make(final: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="tilefarm-collector-") as build:
            native_part.make(
                final, source=source, build=Path(build) / "build", cuda=toolchain.cuda, env={**environ}
            )

    made = publish(folder / f"collector-{native_part.key(source, ())}", make)
    return (made / "lib" / NAME).read_bytes()

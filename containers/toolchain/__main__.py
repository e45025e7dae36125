"""`python -m containers.toolchain install|where|prune`: the toolchain without the rest of the farm."""

import argparse
import os
import sys
import time
from pathlib import Path

from containers.toolchain import default_root, load
from containers.toolchain.install import Sources, install, prune
from farm.errors import FarmError


def main() -> int:
    """Run one command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m containers.toolchain", description=__doc__)
    parser.add_argument("command", choices=("install", "where", "prune"))
    parser.add_argument("--root", type=Path, help="folder of all toolchains (default: the user's data folder)")
    asked = parser.parse_args()
    data_home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    root = asked.root or default_root(data_home)
    try:
        return _run(asked.command, root)
    except FarmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _run(command: str, root: Path) -> int:
    if command == "where":
        print(load(root / "current").root)
    elif command == "prune":
        prune(root, print)
    else:
        start = time.monotonic()
        done = install(root, Sources.packaged(), os.environ, print)
        for what, seconds in done.seconds.items():
            print(f"  {what}: {seconds:.0f} s")
        versions = ", ".join(f"{name} {version}" for name, version in done.toolchain.record.versions.items())
        print(f"toolchain {done.toolchain.root} ({versions}) ready in {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the gates of the bundle in which this file lies: `python run -o RESULTS`, see `--help`.

Nothing of the bundle is imported before every file of it was found to be as it was written.
"""

import os
import sys

# A file beside this one that is called like a module would be that module, before anything was checked.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != _HERE]

import hashlib  # noqa: E402 - not before the line above
import json  # noqa: E402
from pathlib import Path  # noqa: E402

LEAST = (3, 11)


def wrong(here: Path) -> list[str]:
    """What is not as the manifest says, a sentence each."""
    try:
        files = json.loads((here / "bundle.json").read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"bundle.json cannot be read ({error})"]
    there = {str(path.relative_to(here)) for path in here.rglob("*") if path.is_symlink() or not path.is_dir()} - {
        "bundle.json"
    }
    found = [f"{name} is missing" for name in sorted(files.keys() - there)]
    found += [f"{name} is not part of it" for name in sorted(there - files.keys())]
    for name in sorted(files.keys() & there):
        path = here / name
        if path.is_symlink() or hashlib.sha256(path.read_bytes()).hexdigest() != files[name]:
            found.append(f"{name} was changed")
    return found


def main() -> int:
    """Check Python and the files, then hand over."""
    if sys.version_info[:2] < LEAST:
        print(f"error: Python {LEAST[0]}.{LEAST[1]} or newer is needed, this is {sys.version}", file=sys.stderr)
        return 1
    here = Path(__file__).resolve().parent
    problems = wrong(here)
    if problems:
        for problem in problems[:10]:
            print(f"error: the bundle is not as it was written: {problem}", file=sys.stderr)
        print("copy it again, or write it anew by `farm bundle`; nothing was run", file=sys.stderr)
        return 1
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(here / "lib"))
    from containers.box.gate.__main__ import main as gates

    return gates(here, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

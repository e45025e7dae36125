"""Whether a key is anywhere it must not be: the farm's files, git objects, boxes as the engine shows them."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

#: A key that no service ever gave out, in the form that log filters know.
CANARY = "sk-ant-api03-canary-7f3kq9x2m5w8v1z4t6y0b3n5c7d9"
#: Files above this size hold builds and no text of ours, bytes.
LARGEST = 64 << 20


def in_files(folder: Path, key: bytes) -> Iterator[str]:
    """Files below a folder that hold the key, as it is. What goes away meanwhile is passed over."""
    for parent, _, names in os.walk(folder):
        for path in sorted(Path(parent, name) for name in names):
            try:
                plain = path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST
                if plain and key in path.read_bytes():
                    yield str(path.relative_to(folder))
            except OSError:
                continue


def in_git(repo: Path, key: bytes) -> Iterator[str]:
    """Whether any object of a repository holds it: they are compressed, so their files would not show it."""
    said = subprocess.run(
        ("git", f"--git-dir={repo}", "cat-file", "--batch", "--batch-all-objects", "--unordered"),
        capture_output=True,
        check=True,
    )
    if key in said.stdout:
        yield f"an object of {repo.name}"


def in_boxes(boxes: Sequence[str], key: bytes) -> Iterator[str]:
    """Boxes whose description by the engine holds it, or whose output."""
    for box in boxes:
        for command in (("docker", "inspect", box), ("docker", "logs", box)):
            shown = subprocess.run(command, capture_output=True, check=False)
            if key in shown.stdout or key in shown.stderr:
                yield " ".join(command[:2])

"""The packages that a box gets: `farm` and `containers`, copied once per content and never changed."""

import compileall
import hashlib
import os
import py_compile
import shutil
import tempfile
from pathlib import Path

import containers
import farm

_PACKAGES = (farm, containers)
#: Data of the wheel that is not for boxes: other recipes, the built-in target repo, sources of helpers.
_LEFT_OUT = frozenset({"_data", "__pycache__", "native", "images"})
#: Parts of `farm` that a gate on another machine does without.
_NOT_FOR_RUNNER = frozenset({"ledger", "recipes", "report", "tileir"})


def ensure_lib(folder: Path) -> Path:
    """A folder for PYTHONPATH with this farm's `farm` and `containers`; made in `folder` at first use."""
    files = sorted(_files())
    digest = hashlib.sha256()
    for inside, path in files:
        digest.update(f"{inside}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    final = folder / digest.hexdigest()[:16]
    if final.exists():
        return final
    folder.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=folder, prefix="new-"))
    for inside, path in files:
        target = new / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    # A box cannot write what it compiles; for another Python than ours this says nothing and does no harm.
    compileall.compile_dir(
        new,
        quiet=2,
        stripdir=str(new),
        prependdir="/farm/lib",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    for parent, _, _ in os.walk(new):
        os.chmod(parent, 0o755)
    try:
        new.rename(final)
    except OSError:  # another worker was faster
        shutil.rmtree(new)
    return final


def runner_files() -> dict[str, bytes]:
    """What of the two packages a gate on another machine needs, by path below a PYTHONPATH folder."""
    return {inside: path.read_bytes() for inside, path in sorted(_files()) if _for_runner(inside)}


def _for_runner(inside: str) -> bool:
    package, _, rest = inside.partition("/")
    if package == "containers":
        return rest == "__init__.py" or rest.split("/")[0] in ("box", "interpose")
    return rest.split("/")[0] not in _NOT_FOR_RUNNER


def _files() -> list[tuple[str, Path]]:
    found = []
    for package in _PACKAGES:
        root = Path(next(iter(package.__path__)))
        for parent, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
            for name in names:
                if not name.endswith(".pyc"):
                    path = Path(parent) / name
                    found.append((f"{package.__name__}/{path.relative_to(root)}", path))
    return found

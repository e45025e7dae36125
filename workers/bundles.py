"""Writes bundles: what a gate on another machine needs, from implementations with their built libraries."""

import lzma
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.interpose import build as interpose
from containers.lib import runner_files
from farm.bundle import MANIFEST, Bundle, BundleSubject, GateSettings
from farm.errors import UsageError
from farm.hiding import Bare
from farm.op import Op
from farm.patch import Patch, apply_patch, make_patch
from farm.recipe import Recipe
from farm.recipes import Conversion
from farm.tree import Tree, sha256, tree_digest

#: Where the program `run` of a bundle comes from, below `lib/`.
START = "containers/box/gate/start.py"
PRESET = 6
_NAME = 16  #: digits of a digest in a file's name


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """One implementation that is to be judged."""

    id: str  #: id of the job, or `judge.<op>`
    op: Op
    repo: str  #: URL, path or `builtin:NAME`
    base: str  #: full commit id
    tree: Tree  #: of the base commit
    bare: Bare
    patch: Patch  #: from the bare base to the implementation
    library: bytes  #: as built from it


class BundleWriter:
    """Collects the files of one bundle."""

    def __init__(self, *, recipe: Recipe, conversion: Conversion, gpu: str, versions: Mapping[str, str]) -> None:
        self._recipe = recipe
        self._conversion = conversion
        self._gpu = gpu
        self._versions = versions
        self._files: dict[str, bytes] = {}

    def bundle(self, exhibits: Sequence[Exhibit], *, farm: str, collector: bytes | None) -> Bundle:
        """The manifest; its files are collected. `farm` is the farm's version."""
        for inside, data in runner_files().items():
            self._files[f"lib/{inside}"] = data
        self._files["run"] = self._files[f"lib/{START}"]
        withheld = frozenset(path for exhibit in exhibits for path in exhibit.bare.withheld)
        subjects = tuple(self._subject(exhibit, withheld) for exhibit in exhibits)
        return Bundle(
            farm=farm,
            recipe=self._recipe.name,
            conversion=self._recipe.conversion,
            layout=dict(self._recipe.layout),
            gates=GateSettings(geomean_at_least=self._recipe.gates.geomean_at_least),
            gpu=self._gpu,
            versions=dict(self._versions),
            subjects=subjects,
            collector=None if collector is None else self._packed("libs", "collector.so", collector),
            files={name: sha256(data) for name, data in sorted(self._files.items())},
        )

    def _subject(self, exhibit: Exhibit, withheld: frozenset[str]) -> BundleSubject:
        def seen(tree: Tree) -> Tree:
            return {path: entry for path, entry in tree.items() if path not in withheld}

        base, bare = seen(exhibit.tree), seen(exhibit.bare.tree)
        judged = self._conversion.judged(exhibit.bare, exhibit.op, exhibit.patch)
        after = apply_patch(bare, judged)
        found = self._conversion.check(exhibit.bare, exhibit.op, exhibit.patch)
        shim, stub = self._interposed(exhibit.library)
        return BundleSubject(
            id=exhibit.id,
            op=exhibit.op.name,
            repo=exhibit.repo,
            base=exhibit.base,
            tree=self._packed("trees", "tree", make_patch({}, base).to_bytes()),
            hidden=self._patch(make_patch(base, bare)),
            patch=self._patch(exhibit.patch),
            judged=self._patch(judged),
            bare_digest=tree_digest(bare),
            judged_digest=tree_digest(after),
            patch_sha256=exhibit.patch.digest,
            violations=tuple(f"{item.path}: {item.reason}" for item in found),
            names=self._conversion.names(after, exhibit.op),
            library=self._packed("libs", "so", exhibit.library),
            shim=shim,
            stub=stub,
        )

    def _interposed(self, library: bytes) -> tuple[str, str]:
        with tempfile.TemporaryDirectory(prefix="tilefarm-interpose-") as folder:
            built = Path(folder) / "library.so"
            built.write_bytes(library)
            made = interpose(built, Path(folder) / "made")
            shim, stub = made.shim.read_bytes(), made.stub.read_bytes()
        return self._packed("libs", "shim.so", shim), self._packed("libs", "stub.so", stub)

    def _patch(self, patch: Patch) -> str:
        data = patch.to_bytes()
        name = f"patches/{sha256(data)[:_NAME]}.patch"
        self._files[name] = data
        return name

    def _packed(self, folder: str, ending: str, data: bytes) -> str:
        """Add a file under its content's name, once, compressed by xz."""
        name = f"{folder}/{sha256(data)[:_NAME]}.{ending}.xz"
        if name not in self._files:
            self._files[name] = lzma.compress(data, preset=PRESET)
        return name

    def write(self, bundle: Bundle, folder: Path) -> None:
        """Write the bundle into a new folder, whole or not at all; an older bundle there is replaced.

        Raises UsageError when there is something else.
        """
        if folder.is_symlink() or (folder.exists() and not _replaceable(folder)):
            raise UsageError(f"{folder} holds other files than a bundle; give another folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for name, data in self._files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            (new / "run").chmod(0o755)
            (new / MANIFEST).write_bytes(bundle.to_bytes())
            new.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(new, folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise


def _replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / MANIFEST).is_file() or not any(folder.iterdir()))

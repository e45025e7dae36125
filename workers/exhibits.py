"""Implementations to be judged on a GPU machine: of the farm's jobs, and landed ones of a target repo."""

import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from farm.errors import UnknownOp, UsageError
from farm.job import Job
from farm.ledger import Ledger
from farm.op import Op
from farm.orders import LIBRARY
from farm.patch import Patch, make_patch
from farm.recipe import Recipe, load_recipe
from farm.recipes import Conversion, load
from farm.store import ArtifactStore
from farm.tree import Tree
from workers.builds import Builder
from workers.bundles import Exhibit
from workers.repositories import Repositories

#: Name of an attempt's artifact that holds its patch.
PATCH = "patch"


class Read(NamedTuple):
    """A recipe and a target repo at one commit."""

    recipe: Recipe
    folder: Path  #: the recipe's
    conversion: Conversion
    tree: Tree
    ops: tuple[Op, ...]

    def op(self, name: str) -> Op:
        """The op of that name. Raises UnknownOp."""
        found = next((op for op in self.ops if op.name == name), None)
        if found is None:
            known = ", ".join(op.name for op in self.ops)
            raise UnknownOp(f"the target repo has no op {name!r}; it has {known}")
        return found


class Exhibits:
    """Finds what a bundle is made of."""

    def __init__(self, *, repositories: Repositories, builder: Callable[[], Builder], gpu: str) -> None:
        self._repositories = repositories
        self._builder = builder
        self._gpu = gpu

    def read(self, folder: Path, repo: str, base: str) -> Read:
        """The target repo at a full commit id, read with the recipe of a folder."""
        loaded = load_recipe(folder)
        conversion = load(loaded.conversion, loaded.layout)
        tree = self._repositories.read_commit_tree(repo, base)
        return Read(loaded, folder, conversion, tree, conversion.inventory(tree))

    def landed(
        self, read: Read, repo: str, base: str, ops: Sequence[str], say: Callable[[str], None]
    ) -> tuple[Exhibit, ...]:
        """The implementations that a target repo holds at `base`; their libraries are built in a box.

        Raises UnknownOp, UsageError for an op that has not landed, BuildFailed.
        """
        chosen = [read.op(name) for name in ops]
        missing = [op.name for op in chosen if not op.landed]
        if missing:
            landed = ", ".join(op.name for op in read.ops if op.landed) or "none"
            raise UsageError(f"{', '.join(missing)}: no implementation has landed; there is one of {landed}")
        bares = {op.name: read.conversion.bare(read.tree, op) for op in chosen}
        # What is compiled: tests and prose take no part in it, so that one library serves all ops of a commit.
        left_out = {path for bare in bares.values() for path in bare.withheld}
        left_out |= {site.file for op in read.ops for site in op.tests}
        source = {path: entry for path, entry in read.tree.items() if path not in left_out}
        builder = self._builder()
        found = []
        for op in chosen:
            bare = bares[op.name]
            patch = make_patch(bare.tree, read.tree)
            library = builder.build(source, bare, read.recipe, read.folder, self._gpu, say)
            found.append(
                Exhibit(
                    id=f"judge.{op.name}",
                    op=op,
                    repo=repo,
                    base=base,
                    tree=read.tree,
                    bare=bare,
                    patch=patch,
                    library=library,
                )
            )
        return tuple(found)


def of_job(ledger: Ledger, store: ArtifactStore, read: Read, job: Job) -> Exhibit:
    """The implementation that a job has captured. Raises UsageError when it has no patch or no library."""
    artifacts = ledger.artifacts(job.id, attempt=job.attempt)
    if PATCH not in artifacts or LIBRARY not in artifacts:
        raise UsageError(
            f"{job.id} is {job.state.value} and has no judged patch with a library; "
            "jobs that wait for a GPU have one (farm status)"
        )
    run = ledger.run(job.run)
    op = read.op(job.op)
    return Exhibit(
        id=job.id,
        op=op,
        repo=run.repo,
        base=run.base,
        tree=read.tree,
        bare=read.conversion.bare(read.tree, op),
        patch=Patch.from_bytes(store.get(artifacts[PATCH])),
        library=lzma.decompress(store.get(artifacts[LIBRARY])),
    )

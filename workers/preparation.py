"""PREPARING: the base commit's tree, the bare base, the leak scan, the workspace, the order."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from containers.toolchain import Toolchain
from containers.warm import ensure_warm
from farm.codec import encode
from farm.errors import LeakFound, NoSpace, UnknownOp, UnreadableFile
from farm.hiding import Bare
from farm.job import Job, Run
from farm.mountindex import Mount
from farm.op import Op
from farm.orders import AgentOrder, BoxOrder, Purpose
from farm.pipeline.stage import ExecutorKind, Stage
from farm.recipe import Recipe, load_recipe
from farm.recipes import Conversion, load
from farm.tree import Entry, sha256
from workers.frozen import FrozenRecipes
from workers.gitrepo import Git
from workers.leaks import LeakScanner
from workers.places import Places
from workers.repositories import Repositories
from workers.workspace import foreign_objects, give_to_box, make_workspace, visible

#: Subjects that a process remembers: a job's steps follow each other, and jobs of a run share their base.
REMEMBERED = 4


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a job is about, derived from run and op; the same every time it is derived."""

    recipe: Recipe
    recipe_folder: Path
    conversion: Conversion
    op: Op
    bare: Bare


class Preparer:
    """Derives a job's subject and makes its workspace."""

    def __init__(
        self,
        *,
        repositories: Repositories,
        git: Git,
        recipes: FrozenRecipes,
        toolchain: Toolchain,
        scanner: LeakScanner,
        environ: dict[str, str],
        min_free_bytes: int,
        gpu: str,
    ) -> None:
        self._repositories = repositories
        self._git = git
        self._recipes = recipes
        self._toolchain = toolchain
        self._scanner = scanner
        self._environ = environ
        self._min_free_bytes = min_free_bytes
        self._gpu = gpu
        self._subjects: dict[tuple[str, ...], Subject] = {}

    def subject(self, run: Run, job: Job) -> Subject:
        """The job's subject. Raises UnknownOp, UnreadableFile, RepositoryError, ConfigurationError."""
        folder = self._recipes.folder(run.id, run.recipe)
        written = sha256((folder / "recipe.toml").read_bytes())
        # The run is part of it: its own copy of the recipe, which the subject names, ends with the run.
        key = (run.id, run.repo, run.base, run.recipe, written, job.op)
        if key not in self._subjects:
            while len(self._subjects) >= REMEMBERED:
                del self._subjects[next(iter(self._subjects))]
            self._subjects[key] = self._derive(run, job, folder)
        return self._subjects[key]

    def _derive(self, run: Run, job: Job, folder: Path) -> Subject:
        recipe = load_recipe(folder)
        conversion = load(recipe.conversion, recipe.layout)
        tree: dict[str, Entry] = self._repositories.read_commit_tree(run.repo, run.base)
        op = next((op for op in conversion.inventory(tree) if op.name == job.op), None)
        if op is None:
            raise UnknownOp(f"{run.repo} at {run.base[:12]} has no op {job.op!r}; `farm ops` lists what it has")
        for found in op.problems:
            raise UnreadableFile(found.file, found.line, found.column, found.message, found.advice)
        return Subject(
            recipe=recipe, recipe_folder=folder, conversion=conversion, op=op, bare=conversion.bare(tree, op)
        )

    def prepare(
        self,
        run: Run,
        job: Job,
        at: Places,
        executors: dict[Stage, ExecutorKind],
        previous: bytes | None,
        agents: AgentOrder | None = None,
    ) -> dict[str, bytes]:
        """Make the attempt's workspace and order, unless they are there; artifacts to keep, by name.

        What earlier attempts of the job left is removed. Raises NoSpace, LeakFound and whatever `subject`
        raises; a half-made workspace is made anew.
        """
        if at.prepared.exists():
            return _kept(at)
        self.check_space(at.root)
        subject = self.subject(run, job)
        if subject.bare.crate:
            ensure_warm(subject.bare.crate, self._toolchain, self._environ, lambda _: None)
        shutil.rmtree(at.root.parent, ignore_errors=True)
        at.root.mkdir(parents=True)
        workspace = make_workspace(self._git, visible(subject.bare), at.workspace, int(run.created_at))
        foreign = foreign_objects(self._git, workspace)
        recipe = Mount(name="recipe", folder=subject.recipe_folder)
        report = self._scanner.scan(subject.bare, workspace, foreign, subject.op.source_files, (recipe,))
        at.leak_scan.write_text(json.dumps(encode(report), sort_keys=True, indent=1), encoding="utf-8")
        if not report.clean:
            raise LeakFound(report.summary)
        make_out(at.out)
        if previous is not None:
            (at.out / "previous-trace.json").write_bytes(previous)
        trace = None if previous is None else "/out/previous-trace.json"
        order = self.order(subject, run, job, executors, trace, agents=agents)
        at.order.write_text(json.dumps(encode(order), indent=1), encoding="utf-8")
        at.prepared.write_text(json.dumps({"workspace": workspace.digest}), encoding="utf-8")
        return _kept(at)

    def order(
        self,
        subject: Subject,
        run: Run,
        job: Job,
        executors: dict[Stage, ExecutorKind],
        previous: str | None,
        purpose: Purpose = Purpose.PIPELINE,
        patch_sha256: str | None = None,
        agents: AgentOrder | None = None,
    ) -> BoxOrder:
        """The order of a box of this attempt."""
        return BoxOrder(
            purpose=purpose,
            run=run.id,
            job=job.id,
            attempt=job.attempt,
            op=job.op,
            recipe=subject.recipe.name,
            conversion=subject.recipe.conversion,
            source=subject.recipe.source,
            target=subject.recipe.target,
            gpu=self._gpu,
            executors=executors,
            caps=dict(subject.recipe.caps),
            stage_limit_s=subject.recipe.limits.stage_limit_s,
            previous_trace=previous,
            patch_sha256=patch_sha256,
            agents=agents,
        )

    def check_space(self, folder: Path) -> None:
        """Raises NoSpace when too little is free where `folder` is or will be."""
        there = next(parent for parent in folder.parents if parent.exists())
        free = shutil.disk_usage(there).free
        if free < self._min_free_bytes:
            raise NoSpace(
                f"{free >> 20} MiB are free in {there}, a job wants {self._min_free_bytes >> 20} MiB; "
                "free space and the job goes on by itself"
            )


def _kept(at: Places) -> dict[str, bytes]:
    """What of a prepared attempt is an artifact."""
    return {path.name: path.read_bytes() for path in (at.leak_scan, at.order)}


def make_out(folder: Path) -> None:
    """An empty artifact folder that the box's user may write to."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    give_to_box(folder)

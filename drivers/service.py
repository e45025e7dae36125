"""What the commands do, apart from words and colours. Everything it needs is handed in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from drivers.reading import Reader
from drivers.requests import SubmitRequest, budget_micro_usd, select_ops, unreadable
from farm.errors import ConfigurationError, RepositoryError, UsageError
from farm.job import FINAL, Job, JobState, ParkReason, Run
from farm.ledger import Ledger
from farm.op import Op
from farm.pipeline.stage import ExecutorKind
from farm.tree import Entry, Tree
from farm.views import ChangedView, OpsView, RecipeCheckView, ReportView, RunView, op_view
from workers.tentative import tentatively

if TYPE_CHECKING:
    from farm.recipe import Recipe


class Sources(Protocol):
    """Target repos, as `workers.repositories.Repositories` knows them."""

    def resolve(self, repo: str, revision: str | None) -> str:
        """The full id of a revision; None: the default branch. Raises RepositoryError."""

    def read_commit_tree(self, repo: str, commit: str) -> dict[str, Entry]:
        """The files of a commit."""

    def check_push(self, repo: str, commit: str, branch: str, to: str | None) -> None:
        """Ask `to` (None: `repo`) whether it takes a farm branch. Raises RemoteRefused, RepositoryError."""

    def keep(self) -> None:
        """Keep what was fetched for the first time."""

    def discard(self) -> None:
        """Leave nothing of what was fetched for the first time and not kept."""


class Shelf(Protocol):
    """The recipes that this farm has."""

    def names(self) -> tuple[str, ...]:
        """All recipe names."""

    def folder(self, name: str) -> Path:
        """The folder of one, given by name or path. Raises ConfigurationError when there is none."""

    def adopt(self, name: str) -> str:
        """The name under which workers find a recipe given by name or path. Raises ConfigurationError."""


#: The ops of a tree, as the recipe's conversion finds them. Raises RepositoryError without the layout.
Inventory = Callable[["Recipe", Tree], tuple[Op, ...]]


class MemorySources:
    """Target repos in memory, for tests: name -> revision -> files. The first revision is the default."""

    def __init__(self, repos: Mapping[str, Mapping[str, Mapping[str, Entry]]]) -> None:
        self._repos = repos
        self.kept: bool | None = None  #: what was asked last; None: nothing

    def resolve(self, repo: str, revision: str | None) -> str:
        """See Sources."""
        if repo not in self._repos:
            raise RepositoryError(f"there is no repo {repo!r}; check --repo")
        known = self._repos[repo]
        if revision is not None and revision not in known:
            raise RepositoryError(f"{repo} has no revision {revision!r}; check --base")
        return revision or next(iter(known))

    def read_commit_tree(self, repo: str, commit: str) -> dict[str, Entry]:
        """See Sources."""
        return dict(self._repos[repo][commit])

    def check_push(self, repo: str, commit: str, branch: str, to: str | None) -> None:
        """See Sources."""
        if (to or repo) not in self._repos:
            raise RepositoryError(f"there is no repo {to!r}; check --push-to")

    def keep(self) -> None:
        """See Sources."""
        self.kept = True

    def discard(self) -> None:
        """See Sources."""
        self.kept = False


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What the service needs from the machine."""

    preflight: Sequence[Callable[[], object]]  #: each raises FarmError when no job could run here
    nudge: Callable[[Sequence[str]], None]  #: tells workers about new or changed jobs, by id
    now: Callable[[], float]  #: seconds since the epoch, UTC
    versions: Callable[[], Mapping[str, str]]  #: of the toolchain's parts; empty when it is not installed
    say: Callable[[str], None] = lambda _: None  #: a message to the person, beside the document
    stopped: Callable[[], bool] = lambda: False  #: whether no worker of ours runs where one should
    gateway: Callable[[], str | None] = lambda: None  #: makes agents able to ask a model; why not


class _Looked(NamedTuple):
    """A target repo at one commit, read with one recipe."""

    recipe: "Recipe"
    commit: str  #: full id
    ops: tuple[Op, ...]  #: inventory, by name


class FarmService:
    """The farm's commands as functions from requests to views."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        reader: Reader,
        sources: Callable[[], Sources],
        shelf: Shelf,
        inventory: Inventory,
        hooks: Hooks,
    ) -> None:
        self._ledger = ledger
        self.read = reader
        self._sources = sources
        self._shelf = shelf
        self._inventory = inventory
        self._hooks = hooks

    def ops(self, *, repo: str, base: str | None, recipe: str) -> OpsView:
        """The ops of a target repo. Raises RepositoryError, ConfigurationError."""
        with tentatively(self._sources()):
            looked = self._look(repo, base, recipe)
        return OpsView(repo=repo, base=looked.commit, recipe=recipe, ops=tuple(op_view(op) for op in looked.ops))

    def submit(self, request: SubmitRequest) -> Run:
        """Check everything, then store the run and tell the workers. Raises before anything is stored."""
        with tentatively(self._sources()):
            run = self._submit(request)
        self._tell(run)
        return run

    def _submit(self, request: SubmitRequest) -> Run:
        looked = self._look(request.repo, request.base, request.recipe)
        ops = select_ops(request.ops, looked.ops)
        if not ops:
            raise UsageError("every op of the target repo has a target implementation; name ops to redo them")
        attempts = looked.recipe.limits.attempts if request.attempts is None else request.attempts
        branch = f"farm/{looked.recipe.name}/{ops[0].name}"
        self._sources().check_push(request.repo, looked.commit, branch, request.push_to)
        for check in self._hooks.preflight:
            check()
        self._need_gateway(request.executors, looked.recipe)
        run = self._ledger.submit(
            recipe=self._shelf.adopt(request.recipe),
            repo=request.repo,
            push_to=request.push_to,
            base=looked.commit,
            accept=request.accept,
            attempts=attempts,
            executors=request.executors,
            budget_micro_usd=None if request.budget is None else budget_micro_usd(request.budget),
            ops=[op.name for op in ops],
        )
        for op in ops:
            if op.problems:
                self._hooks.say(f"{unreadable(op)}\nits job fails at once, the others go on")
        return run

    def retry(self, job: Job) -> Run:
        """A new run for the op of a job that failed or was cancelled, with the same base, recipe and proof."""
        from farm.recipe import load_recipe

        if job.state not in FINAL or job.state is JobState.ACCEPTED:
            raise UsageError(f"{job.id} is {job.state.value}; only failed and cancelled jobs are tried again")
        run = self._ledger.run(job.run)
        for check in self._hooks.preflight:
            check()
        self._need_gateway(run.executors, load_recipe(self._shelf.folder(run.recipe)))
        again = self._ledger.submit(
            recipe=run.recipe,
            repo=run.repo,
            push_to=run.push_to,
            base=run.base,
            accept=run.accept,
            attempts=run.attempts,
            executors=run.executors,
            budget_micro_usd=run.budget_micro_usd,
            ops=[job.op],
        )
        self._tell(again)
        return again

    def cancel(self, name: str) -> ChangedView:
        """Ask for a run's or a job's cancellation. Jobs that are final stay as they are."""
        jobs = self._jobs_called(name)
        wanted = [job.id for job in jobs if job.state not in FINAL]
        asked = [self._ledger.request_cancel(job_id) for job_id in wanted]
        ended = tuple(job.id for job in asked if job.state in FINAL)
        needs_up = len(ended) < len(wanted) and self._hooks.stopped()
        self._hooks.nudge(wanted)
        return ChangedView(action="cancel", jobs=tuple(wanted), ended=ended, needs_up=needs_up)

    def budget(self, run: Run, usd: str) -> ChangedView:
        """Give a run another budget; jobs that are parked for one are looked at again. Raises UsageError."""
        self._ledger.set_budget(run.id, budget_micro_usd(usd))
        parked = [job.id for job in self._ledger.jobs(run=run.id) if job.park_reason is ParkReason.BUDGET]
        self._hooks.nudge(parked)
        return ChangedView(action="budget", jobs=tuple(parked), needs_up=self._hooks.stopped())

    def run(self, run: Run) -> RunView:
        """The run as it is now."""
        return self.read.run_view(run)

    def report(self, run: Run) -> ReportView:
        """Write the run's report as it is now."""
        from farm.report.model import build_report
        from farm.report.render import write_report

        jobs = self._ledger.jobs(run=run.id)
        attempts = {job.id: self.read.evidence(job) for job in jobs}
        traces = {job.id: self.read.trace(job) for job in jobs if job.state is not JobState.ACCEPTED}
        report = build_report(
            run,
            jobs,
            attempts,
            traces=traces,
            versions=self._hooks.versions(),
            written_at=self._hooks.now(),
        )
        html = write_report(report, self.read.report_folder(run))
        return ReportView(
            run=run.id,
            html=str(html),
            markdown=str(html.with_suffix(".md")),
            json=str(html.with_suffix(".json")),
        )

    def check_recipe(self, name: str | None) -> tuple[RecipeCheckView, ...]:
        """All mistakes of a recipe, given by name or path, a name first; of all recipes when None."""
        if name is None:
            return tuple(self._check(recipe, self._shelf.folder(recipe)) for recipe in self._shelf.names())
        known = name in self._shelf.names()
        if not known and ("/" in name or name.endswith(".toml") or Path(name).is_dir()):
            return (self._check(name, Path(name)),)
        return (self._check(name, self._shelf.folder(name)),)

    def _check(self, name: str, path: Path) -> RecipeCheckView:
        from farm.recipe import detect_errors

        return RecipeCheckView(recipe=name, problems=tuple(detect_errors(path)))

    def _look(self, repo: str, base: str | None, recipe_name: str) -> _Looked:
        from farm.recipe import load_recipe

        recipe = load_recipe(self._shelf.folder(recipe_name))
        sources = self._sources()
        commit = sources.resolve(repo, base)
        tree = sources.read_commit_tree(repo, commit)
        return _Looked(recipe=recipe, commit=commit, ops=self._inventory(recipe, tree))

    def _need_gateway(self, executors: ExecutorKind | None, recipe: "Recipe") -> None:
        """Where agents may have to work, make a model able to be asked.

        Without one, stages that may be an agent's are the program's alone. Raises ConfigurationError where only
        an agent performs them.
        """
        kinds = set(recipe.executors.values()) if executors is None else {executors}
        if not kinds & {ExecutorKind.AGENT, ExecutorKind.AUTO}:
            return
        problem = self._hooks.gateway()
        if problem is not None and ExecutorKind.AGENT in kinds:
            raise ConfigurationError(f"agents cannot work: {problem}")
        if problem is not None:
            self._hooks.say(f"no agent takes over where a program gives up: {problem}")

    def _jobs_called(self, name: str) -> tuple[Job, ...]:
        jobs = self._ledger.jobs(run=name)
        return jobs or (self.read.find_job(name),)

    def _tell(self, run: Run) -> None:
        self._hooks.nudge([job.id for job in self._ledger.jobs(run=run.id)])

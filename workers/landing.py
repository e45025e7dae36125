"""Landing: an accepted patch becomes one commit on a branch of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from farm.errors import NotAccepted
from farm.gates import Basis, GateName, GateResult, Ruling
from farm.job import Accept
from farm.patch import Patch, apply_patch
from farm.tree import Tree
from workers.gitrepo import Author
from workers.repositories import Repositories

_PREFIX = {Accept.MEASURED: "farm", Accept.CERTIFIED: "farm-certified"}


@dataclass(frozen=True, kw_only=True)
class Landing:
    """Everything that a landed commit says and stands on. Equal landings give equal commits."""

    run: str
    job: str
    op: str
    recipe: str
    source: str  #: for the subject, e.g. `cuTile Python`
    target: str  #: for the subject, e.g. `cutile-rs`
    repo: str  #: URL, path or `builtin:NAME` of the target repo
    push_to: str | None  #: where the branch goes; None: to `repo`
    base: str  #: full commit id; the commit's parent
    accept: Accept
    gates: tuple[GateResult, ...]
    evidence_sha256: str  #: of the evidence in the artifact store
    versions: Mapping[str, str]  #: of the toolchain's parts
    when_s: int  #: fixed by the job, so that a repeated landing gives the same commit; seconds since the epoch


@dataclass(frozen=True, kw_only=True)
class Landed:
    """A commit on its branch."""

    commit: str
    branch: str


def branch_name(landing: Landing) -> str:
    """The branch of one op: `farm/<recipe>/<op>`, or `farm-certified/...` for certified ones."""
    return f"{_PREFIX[landing.accept]}/{landing.recipe}/{landing.op}"


def message(landing: Landing, patch: Patch) -> str:
    """The commit message, trailers last. Raises NotAccepted unless all three gates passed as asked for."""
    results = {result.gate: result for result in landing.gates}
    for gate in GateName:
        _require(landing, gate, results.get(gate))
    touched = "".join(f"  {path}\n" for path in patch.paths)
    versions = ", ".join(f"{name} {landing.versions[name]}" for name in sorted(landing.versions))
    trailers = {f"Farm-{gate.value.capitalize()}": results[gate].summary for gate in GateName} | {
        "Farm-Evidence": f"sha256:{landing.evidence_sha256}",
        "Farm-Patch": f"sha256:{patch.digest}",
        "Farm-Versions": versions or "none recorded",
        "Farm-Run": landing.run,
        "Farm-Job": landing.job,
        "Farm-Base": landing.base,
    }
    lines = "".join(f"{name}: {' '.join(value.split())}\n" for name, value in trailers.items())
    return (
        f"{landing.op}: {landing.target} implementation converted from {landing.source}\n\n"
        f"Written against the base without an earlier {landing.target} implementation of {landing.op}.\n"
        f"Files of the patch:\n{touched}\n{lines}"
    )


def _require(landing: Landing, gate: GateName, result: GateResult | None) -> None:
    if result is None or result.ruling is not Ruling.PASS:
        ruling = Ruling.NOT_RUN if result is None else result.ruling
        raise NotAccepted(f"gate {gate} of {landing.job} says {ruling}; nothing is landed without all three")
    if result.basis is None or (landing.accept is Accept.MEASURED and result.basis is not Basis.MEASURED):
        raise NotAccepted(f"gate {gate} of {landing.job} is not measured; --accept certified lands it as such")


def land(repositories: Repositories, landing: Landing, bare_tree: Tree, patch: Patch) -> Landed:
    """Commit the complete bare base plus the patch onto the base and push it.

    Repeating it after a crash gives the same commit and ends at once when the remote has it. A branch that an
    earlier run left is replaced under a lease on what it holds now; one with somebody else's commit is not.
    Raises NotAccepted, PatchConflict, RepositoryError or RemoteRefused; nothing has been pushed then.
    """
    text = message(landing, patch)
    tree = apply_patch(bare_tree, patch)
    branch = branch_name(landing)
    commit = repositories.write_commit(landing.repo, tree, landing.base, text, Author(), landing.when_s)
    to = landing.repo if landing.push_to is None else landing.push_to
    repositories.push(landing.repo, commit, branch, to, repositories.replaceable(landing.repo, branch, to))
    return Landed(commit=commit, branch=branch)

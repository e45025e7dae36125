"""`farm verify`: repeats the decision behind a commit from its evidence, without a GPU or a network."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farm.capture import read_tree
from farm.errors import PatchRefused, RepositoryError, UsageError
from farm.evidence import CLAIM, Claim, Verified, read_document, verify
from farm.patch import Patch, make_patch
from farm.tree import tree_digest
from farm.views import VerifyView

if TYPE_CHECKING:
    from farm.recipes import Conversion
    from farm.store import ArtifactStore
    from workers.repositories import Repositories

#: The conversion of a recipe's name. Raises ConfigurationError.
Conversions = Callable[[str], "Conversion"]
_TRAILER = re.compile(r"^(Farm-[A-Za-z]+): (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """What a landed commit says of itself."""

    id: str
    base: str
    evidence: str  #: digest


def verify_folder(folder: Path) -> VerifyView:
    """Repeat the decision of an evidence in a folder; which commit it is of is not looked at.

    Raises UsageError for a folder that holds none.
    """
    files = read_folder(folder)
    if "patch" not in files:
        raise UsageError(f"{folder} holds no evidence: there is no file `patch` in it")
    try:
        patch = Patch.from_bytes(files["patch"]).digest
    except PatchRefused:
        patch = ""  # altered, and named as such
    return _view(str(folder), verify(files, patch_sha256=patch))


def verify_commit(
    repositories: "Repositories",
    conversions: Conversions,
    repo: str,
    revision: str,
    *,
    store: "ArtifactStore",
    folder: Path | None,
) -> tuple[VerifyView, dict[str, bytes]]:
    """Repeat the decision of a landed commit, and the evidence's files, from the store or from a folder.

    What the evidence is measured against comes from the commit: its trailer, its tree, and the bare base of its
    parent. Raises RepositoryError, ArtifactMissing.
    """
    from workers.evidence import stored_evidence

    commit = read_commit(repositories, repo, revision)
    files = stored_evidence(store, commit.evidence) if folder is None else read_folder(folder)
    claim = read_document(Claim, files, CLAIM)
    if claim is None:
        return _view(commit.id, verify(files, patch_sha256="", digest=commit.evidence)), files
    tree = repositories.read_commit_tree(repo, commit.base)
    conversion = conversions(claim.recipe)
    op = next((op for op in conversion.inventory(tree) if op.name == claim.op), None)
    if op is None:
        raise RepositoryError(
            f"{commit.base[:12]} has no op {claim.op!r}, of which the evidence of {commit.id} is"
        )
    bare = conversion.bare(tree, op).tree
    patch = make_patch(bare, repositories.read_commit_tree(repo, commit.id))
    found = verify(files, patch_sha256=patch.digest, bare_base=tree_digest(bare), digest=commit.evidence)
    return _view(commit.id, found), files


def read_commit(repositories: "Repositories", repo: str, revision: str) -> Commit:
    """A landed commit. Raises RepositoryError for one that the farm did not make."""
    found = repositories.resolve(repo, revision)
    head, _, message = repositories.read_commit_text(repo, found).partition("\n\n")
    trailers = dict(_TRAILER.findall(message))
    evidence, base = trailers.get("Farm-Evidence", ""), trailers.get("Farm-Base", "")
    if not evidence.startswith("sha256:") or not base:
        raise RepositoryError(f"{found} is no commit of the farm: it has no Farm-Evidence trailer")
    parents = re.findall(r"^parent ([0-9a-f]+)$", head, re.MULTILINE)
    if parents != [base]:
        raise RepositoryError(f"{found} does not stand on the base that it names, {base[:12]}: it was rewritten")
    return Commit(id=found, base=base, evidence=evidence.removeprefix("sha256:"))


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of an evidence in a folder. Raises UsageError when it is none."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give a commit, or a folder with an evidence")
    return {path: entry.data for path, entry in read_tree(folder).items()}


def _view(what: str, found: Verified) -> VerifyView:
    decision = "nothing: it could not be read" if found.decision is None else found.decision.reason
    return VerifyView(
        what=what,
        proven=found.proven,
        decision=decision,
        problems=tuple(f"{problem.file}: {problem.what}" for problem in found.problems),
        gates=() if found.measured is None else found.measured.gates,
    )


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write an evidence into a new or empty folder. Raises UsageError when it holds something."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)

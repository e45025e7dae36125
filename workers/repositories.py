"""Target repos: one bare mirror each in the state folder, read as trees, pushed to as branches."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from farm.capture import read_tree
from farm.errors import RemoteRefused, RemoteSilent, RepositoryError
from farm.tree import Entry, Tree, tree_digest
from workers.gitrepo import Author, Done, Git, read_commit, write_commit
from workers.tentative import Tentative, locked

_BRANCH = re.compile(r"(farm|farm-certified)(/[A-Za-z0-9_][A-Za-z0-9_.-]*){2}")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*([~^][0-9]*)*")
_FULL_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_FORBIDDEN = re.compile(r"\.\.|//|\.lock(/|$)|/\.|\.(/|$)|/$")
_URL = re.compile(r"(https?|ssh|git|file)://[^\s\x00-\x1f]+|[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:[^\s\x00-\x1f]+")
_BUILTIN = "builtin:"
_PERMISSIONS = "check its permissions or give --push-to"
#: Folders that running a packaged repo leaves behind and that are not part of it.
_DEBRIS = frozenset({"__pycache__", ".pytest_cache", "target"})
#: 1 January 2026, 00:00 UTC: the date of every built-in repo's one commit, seconds since the epoch.
_BUILTIN_DATE_S = 1_767_225_600


class Repositories:
    """The target repos that a state folder knows. Safe for many processes at once."""

    def __init__(
        self, state: Path, at: Git, builtin: Mapping[str, Path], *, tentative: Tentative | None = None
    ) -> None:
        """`builtin` gives the packaged folder of each `builtin:NAME`; `tentative` builds what is not there yet."""
        self._state = state
        self._git = at
        self._builtin = builtin
        self._tentative = tentative
        self._seen: set[tuple[Path, str]] = set()  # commits of mirrors; a mirror loses none

    def resolve(self, repo: str, revision: str | None) -> str:
        """The full id of a revision; None is the repo's default branch. Fetches unless the id is known.

        Raises RepositoryError when there is no such repo or revision.
        """
        if revision is not None and _FULL_ID.fullmatch(revision) and self._has(self._mirror(repo), revision):
            return revision
        if revision is not None and (not _REVISION.fullmatch(revision) or _FORBIDDEN.search(revision)):
            raise RepositoryError(f"{revision!r} is not a branch, tag or commit id; check --base")
        mirror = self._fetch(repo)
        if revision in (None, "HEAD"):
            revision = self._default(repo)
        for name in (f"refs/heads/{revision}", f"refs/tags/{revision}", str(revision)):
            done = self._git.run(mirror, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            if done.status == 0:
                return done.out.decode().strip()
        heads = self._git.must(mirror, "for-each-ref", "--format=%(refname:short)", "refs/heads").decode()
        branches = ", ".join(heads.split()[:10]) or "no branch"
        raise RepositoryError(f"{_shown(repo)} has no revision {revision!r}; it has {branches}: check --base")

    def read_commit_tree(self, repo: str, commit: str) -> dict[str, Entry]:
        """The files of a commit that resolve() has given. Raises RepositoryError for submodules."""
        mirror = self._known(repo, commit)
        return read_commit(self._git, mirror, commit)

    def read_commit_text(self, repo: str, commit: str) -> str:
        """A commit as git writes it: header lines, an empty line, the message."""
        return self._git.must(self._known(repo, commit), "cat-file", "commit", commit).decode("utf-8", "replace")

    def write_commit(self, repo: str, tree: Tree, parent: str, message: str, author: Author, when_s: int) -> str:
        """Write a commit with this tree to the mirror, from bytes; equal inputs give an equal id."""
        mirror = self._known(repo, parent)
        key = hashlib.sha256("\0".join((tree_digest(tree), parent, message, str(when_s))).encode()).hexdigest()
        ref = f"refs/farm-commits/{key[:32]}"
        with locked(mirror.with_suffix(".lock")):
            return write_commit(self._git, mirror, ref, tree, parent, message, author, when_s)

    def keep(self) -> None:
        """Make what was fetched for the first time part of the state folder."""
        if self._tentative is not None:
            self._tentative.keep()

    def discard(self) -> None:
        """Forget what was fetched for the first time and not kept."""
        if self._tentative is not None:
            self._tentative.discard()

    def remote_branch(self, to: str, branch: str) -> str | None:
        """The id that a branch has in a remote now, or None. Raises RemoteSilent, RepositoryError."""
        return self._remote(to, branch)[0]

    def replaceable(self, repo: str, branch: str, to: str) -> str | None:
        """What a farm branch holds in a remote, None: there is none. A commit of ours may be replaced.

        Raises RemoteRefused when somebody else made or amended the commit, RemoteSilent, RepositoryError.
        """
        now = self.remote_branch(to, branch)
        if now is None:
            return None
        mirror = self._mirror(repo) if self._mirror(repo).exists() else self._fetch(repo)
        if not self._has(mirror, now):
            options = ("--quiet", "--no-tags", "--no-write-fetch-head")
            done = self._git.run(mirror, "fetch", *options, self.location(to), f"refs/heads/{branch}")
            if done.status != 0:
                raise RemoteSilent(f"{branch!r} of {_shown(to)} cannot be read: {self._words(to, done)}")
        header = self._git.must(mirror, "cat-file", "commit", now).decode("utf-8", "replace").partition("\n\n")[0]
        committer = next((line for line in header.splitlines() if line.startswith("committer ")), "")
        if not committer.startswith(f"committer {Author().name} <{Author().email}> "):
            who = committer.removeprefix("committer ").rpartition(" <")[0] or "somebody else"
            raise RemoteRefused(
                f"{branch!r} of {_shown(to)} holds {now[:12]} by {who}, which the farm did not make; it is not "
                "replaced: move that commit to a branch of another name, or give --push-to"
            )
        return now

    def check_push(self, repo: str, commit: str, branch: str, to: str | None) -> None:
        """Ask `to` (None: `repo`) whether it would take a farm branch; nothing changes there.

        A hook that declines is asked at the real push alone. Raises RemoteRefused, RemoteSilent, RepositoryError.
        """
        target = repo if to is None else to
        now, _ = self._remote(target, branch)
        location = self.location(target)
        folder = next((at for at in (Path(location, ".git"), Path(location)) if (at / "objects").is_dir()), None)
        if folder is not None and not all(os.access(folder / name, os.W_OK) for name in ("objects", "refs")):
            raise RemoteRefused(f"{_shown(target)} may not be written to; {_PERMISSIONS}")
        lease = f"--force-with-lease=refs/heads/{branch}:{now or ''}"
        refspec = f"{commit}:refs/heads/{branch}"
        mirror = self._known(repo, commit)
        done = self._git.run(mirror, "push", "--dry-run", "--porcelain", "--no-verify", lease, location, refspec)
        if done.status != 0:
            raise RemoteRefused(f"{_shown(target)} takes no pushes: {self._words(target, done)}; {_PERMISSIONS}")

    def push(self, repo: str, commit: str, branch: str, to: str | None, expect: str | None) -> None:
        """Put a commit of the mirror of `repo` on a farm branch of `to` (None: of `repo`).

        `expect` is the id that the branch must have there, None: it must not exist. Nothing happens when
        it holds the commit already. Raises RemoteRefused with the remote's words.
        """
        target = repo if to is None else to
        if not _BRANCH.fullmatch(branch) or _FORBIDDEN.search(branch):
            raise RemoteRefused(f"{branch!r} is not pushed: only farm/... and farm-certified/... branches are")
        now, default = self._remote(target, branch)
        if now == commit:
            return
        if default == f"refs/heads/{branch}":
            raise RemoteRefused(f"{branch!r} is the default branch of {_shown(target)}; nothing was pushed")
        if now != expect:
            raise RemoteRefused(
                f"{branch!r} of {_shown(target)} holds {now or 'nothing'}, expected {expect or 'nothing'}"
            )
        lease = f"--force-with-lease=refs/heads/{branch}:{expect or ''}"
        refspec = f"{commit}:refs/heads/{branch}"
        mirror = self._known(repo, commit)
        done = self._git.run(mirror, "push", "--porcelain", "--no-verify", lease, self.location(target), refspec)
        if done.status != 0:
            raise RemoteRefused(
                f"{_shown(target)} did not take {branch!r}: {self._words(target, done)}; {_PERMISSIONS}"
            )

    def location(self, repo: str) -> str:
        """The URL or absolute path that git knows a repo by: where its branches can be looked at.

        Raises RepositoryError for a path that does not exist and for an unknown built-in repo.
        """
        if repo.startswith(_BUILTIN):
            return str(self._at(self._builtin_place(repo)))
        if _URL.fullmatch(repo):
            return repo
        path = Path(repo).expanduser().resolve()
        if "\0" in repo or "\n" in repo or not path.exists():
            raise RepositoryError(f"{repo!r} is neither a git URL nor a path that exists; check --repo")
        return str(path)

    def _builtin_place(self, repo: str) -> Path:
        """Where a built-in repo lies, or will."""
        return (self._state / "builtin" / f"{self._builtin_name(repo)}.git").absolute()

    def _at(self, place: Path) -> Path:
        """Where a repo of the state folder is now."""
        return place if self._tentative is None else self._tentative.at(place)

    def _building(self, place: Path) -> Path:
        """Where a repo of the state folder is, or is to be made."""
        now = self._at(place)
        return now if self._tentative is None or now.exists() else self._tentative.begin(place)

    def _has(self, mirror: Path, commit: str) -> bool:
        if not mirror.exists():
            return False
        if (mirror, commit) not in self._seen:
            if self._git.run(mirror, "cat-file", "-e", f"{commit}^{{commit}}").status != 0:
                return False
            self._seen.add((mirror, commit))
        return True

    def _known(self, repo: str, commit: str) -> Path:
        mirror = self._mirror(repo)
        if not _FULL_ID.fullmatch(commit):
            raise RepositoryError(f"{commit!r} is not a full commit id")
        if not self._has(mirror, commit):
            self._fetch(repo)
        if not self._has(mirror, commit):
            raise RepositoryError(f"{_shown(repo)} has no commit {commit}; check --base")
        return mirror

    def _mirror(self, repo: str) -> Path:
        return self._at(self._mirror_place(repo))

    def _mirror_place(self, repo: str) -> Path:
        name = re.sub(r"[^A-Za-z0-9]+", "-", repo.rstrip("/").rsplit("/", 1)[-1]).strip("-")[:32]
        place = str(self._builtin_place(repo)) if repo.startswith(_BUILTIN) else self.location(repo)
        key = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self._state / "mirrors" / f"{name}-{key}.git"

    def _fetch(self, repo: str) -> Path:
        place = self._mirror_place(repo)
        mirror = self._building(place)
        with locked(mirror.with_suffix(".lock")):
            if repo.startswith(_BUILTIN):
                self._materialise(repo)
            url = self.location(repo)
            fresh = not mirror.exists()
            if fresh:
                self._init(mirror)
            refspecs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
            options = ("--quiet", "--prune", "--no-tags", "--no-write-fetch-head")
            done = self._git.run(mirror, "fetch", *options, url, *refspecs)
            if done.status != 0:
                if fresh:
                    shutil.rmtree(mirror)
                words = self._words(repo, done)
                raise RepositoryError(f"{_shown(repo)} cannot be read as a git repo: {words}; check --repo")
        return mirror

    def _init(self, folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            new = Path(place) / "new.git"
            self._git.must(None, "init", "--quiet", "--bare", "--template=", str(new))
            new.rename(folder)

    def _default(self, repo: str) -> str:
        done = self._git.run(None, "ls-remote", "--symref", self.location(repo), "HEAD")
        for line in done.out.decode("utf-8", "replace").splitlines():
            value, _, name = line.partition("\t")
            if name == "HEAD":
                return value.removeprefix("ref: refs/heads/")
        raise RepositoryError(f"{_shown(repo)} has no default branch; give --base")

    def _remote(self, to: str, branch: str) -> tuple[str | None, str | None]:
        try:
            place = self.location(to)
        except RepositoryError:
            raise RepositoryError(
                f"{_shown(to)!r} is neither a git URL nor a path that exists; check --push-to"
            ) from None
        done = self._git.run(None, "ls-remote", "--symref", place, "HEAD", f"refs/heads/{branch}")
        if done.status != 0:
            raise RemoteSilent(f"{_shown(to)} does not answer: {self._words(to, done)}; check --push-to")
        now, default = None, None
        for line in done.out.decode("utf-8", "replace").splitlines():
            value, _, name = line.partition("\t")
            if name == f"refs/heads/{branch}":
                now = value
            if name == "HEAD" and value.startswith("ref: "):
                default = value.removeprefix("ref: ")
        return now, default

    def _builtin_name(self, repo: str) -> str:
        name = repo.removeprefix(_BUILTIN)
        if name not in self._builtin:
            raise RepositoryError(f"no built-in repo {name!r}; there is {', '.join(sorted(self._builtin))}")
        return name

    def _materialise(self, repo: str) -> None:
        name = self._builtin_name(repo)
        files = read_tree(self._builtin[name])
        tree = {path: entry for path, entry in files.items() if not _DEBRIS & set(path.split("/"))}
        place = self._building(self._builtin_place(repo))
        if not place.exists():
            self._init(place)
        message = f"{name}: the built-in target repo\n"
        write_commit(self._git, place, "refs/heads/main", tree, None, message, Author(), _BUILTIN_DATE_S)

    def _words(self, repo: str, done: Done) -> str:
        lines = [*done.out.decode("utf-8", "replace").splitlines(), *done.err.splitlines()]
        said = [
            # Of a refused ref, `!<tab>refs<tab>why`, the reason alone.
            line.rsplit("\t", 1)[-1].removeprefix("fatal: ").removeprefix("error: ").strip()
            for line in lines
            if line.startswith(("!", "fatal:", "remote:", "error:")) and "failed to push some refs" not in line
        ]
        text = "; ".join(said or lines) or f"git ended with {done.status}"
        return text.replace(self.location(repo), _shown(repo))


def _shown(repo: str) -> str:
    """A repo's name for messages, without the password that a URL may hold."""
    return re.sub(r"//[^/@\s]*@", "//", repo)

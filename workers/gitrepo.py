"""The only module that runs git, through GitPython, and never in a tree that a box wrote.

Each target repo has one bare mirror in the state folder. Trees are read from and written to it as bytes;
nothing is ever checked out. Git sees no system or user configuration and no prompts, and no hooks but
those with which a remote on this machine judges a push.
"""

import os
import string
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import git

from farm.errors import RepositoryError
from farm.paths import path_bytes
from farm.tree import Entry, Mode, Tree, ordered

_UNQUOTED = frozenset(string.ascii_letters + string.digits + "/._-")
#: What git may take over from our own environment: where programs are, and how the network is reached.
_PASSED = (
    *("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
_CONFIG = """\
[safe]
\tdirectory = *
[core]
\tcompression = 1
\tfsmonitor = false
\tautocrlf = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tlogAllRefUpdates = false
[protocol]
\tallow = never
[protocol "file"]
\tallow = always
[protocol "https"]
\tallow = always
[protocol "http"]
\tallow = always
[protocol "ssh"]
\tallow = always
[protocol "git"]
\tallow = always
[gc]
\tauto = 0
[maintenance]
\tauto = false
[fetch]
\trecurseSubmodules = false
[init]
\tdefaultBranch = main
[advice]
\tdetachedHead = false
"""


@dataclass(frozen=True, kw_only=True)
class Author:
    """Whom a commit names as author and committer."""

    name: str = "tilefarm"
    email: str = "tilefarm@localhost"


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a git command ended."""

    status: int  #: exit code
    out: bytes  #: standard output
    err: str  #: standard error


class Git:
    """Runs git commands with an environment that holds nothing but what is named here."""

    def __init__(self, config: Path, environ: Mapping[str, str]) -> None:
        """`config` is a file that this class writes; the few variables passed on come from `environ`."""
        self._config = config
        self._env = {"PATH": os.defpath, "HOME": "/nonexistent"} | {
            name: environ[name] for name in _PASSED if name in environ
        }
        self._env |= {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(config),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "/bin/false",
            "SSH_ASKPASS": "/bin/false",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }

    def run(self, repo: Path | None, *args: str, data: bytes = b"") -> Done:
        """One command in a repository (bare, or a `.git` folder), with `data` on its standard input."""
        if not self._config.exists():
            self._config.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._config.parent, delete=False) as file:
                file.write(_CONFIG)
            os.replace(file.name, self._config)
        where = [] if repo is None else [f"--git-dir={repo}"]
        command = [
            "env",
            "-i",
            *(f"{name}={value}" for name, value in self._env.items()),
            "git",
            *where,
            *args,
        ]
        with tempfile.TemporaryFile() as stdin:
            stdin.write(data)
            stdin.seek(0)
            status, out, err = git.Git(os.fspath(self._config.parent)).execute(
                command,
                istream=stdin,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
            )
        text = err.decode("utf-8", "replace") if isinstance(err, bytes) else str(err)
        return Done(status=int(status), out=bytes(out), err=text.strip())

    def must(self, repo: Path | None, *args: str, data: bytes = b"") -> bytes:
        """The same, and its output. Raises RepositoryError with git's words when it fails."""
        done = self.run(repo, *args, data=data)
        if done.status != 0:
            raise RepositoryError(f"git {args[0]} failed: {done.err}")
        return done.out


def write_commit(
    at: Git, repo: Path, ref: str, tree: Tree, parent: str | None, message: str, author: Author, when_s: int
) -> str:
    """Write a commit of exactly this tree and point `ref` at it; equal inputs give an equal id."""
    who = f"{author.name} <{author.email}> {when_s} +0000".encode()
    text = message.encode()
    parts = [b"commit %s\nmark :1\n" % ref.encode(), b"author %s\ncommitter %s\n" % (who, who)]
    parts.append(b"data %d\n%s\n" % (len(text), text))
    if parent is not None:
        parts.append(b"from %s\n" % parent.encode())
    parts.append(b"deleteall\n")
    for path in ordered(tree):
        entry = tree[path]
        head = b'M %s inline "%s"\n' % (entry.mode.encode(), _quoted(path))
        parts.append(b"%sdata %d\n%s\n" % (head, len(entry.data), entry.data))
    parts.append(b"get-mark :1\ndone\n")
    out = at.must(repo, "fast-import", "--quiet", "--depth=0", "--force", "--done", data=b"".join(parts))
    return out.decode().strip()


def _quoted(path: str) -> bytes:
    return b"".join(b"%c" % byte if chr(byte) in _UNQUOTED else b"\\%03o" % byte for byte in path_bytes(path))


def read_commit(at: Git, repo: Path, commit: str) -> dict[str, Entry]:
    """The tree of a commit, bytes exact. Raises RepositoryError for submodules, naming them."""
    rows = []
    for line in at.must(repo, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, kind, blob = head.decode().split()
        path = name.decode("utf-8", "surrogateescape")
        if kind != "blob":
            raise RepositoryError(f"{path!r} of {commit[:12]} is a submodule; commit its files to the repo itself")
        rows.append((path, _mode(mode), blob))
    blobs = read_objects(at, repo, [blob for _, _, blob in rows])
    return {path: Entry(mode, blobs[blob]) for path, mode, blob in rows}


def _mode(text: str) -> Mode:
    if text == Mode.LINK:
        return Mode.LINK
    return Mode.EXECUTABLE if int(text, 8) & 0o100 else Mode.FILE


def read_objects(at: Git, repo: Path, ids: Sequence[str]) -> dict[str, bytes]:
    """The contents of objects by id. Raises RepositoryError when one is missing."""
    wanted = list(dict.fromkeys(ids))
    out = at.must(repo, "cat-file", "--batch", data="".join(f"{name}\n" for name in wanted).encode())
    found = {}
    start = 0
    for name in wanted:
        end = out.index(b"\n", start)
        head = out[start:end].decode("utf-8", "replace").split()
        if len(head) != 3:
            raise RepositoryError(f"object {name} is missing from {repo}; remove that folder and run it again")
        size = int(head[2])
        found[name] = out[end + 1 : end + 1 + size]
        start = end + 1 + size + 1
    return found


def list_objects(at: Git, repo: Path) -> dict[str, str]:
    """Every object a repository can reach by any means, packed, loose or borrowed: id to kind."""
    form = "--batch-check=%(objectname) %(objecttype)"
    out = at.must(repo, "cat-file", "--batch-all-objects", "--unordered", form)
    return dict(line.split(" ", 1) for line in out.decode().splitlines())


def reachable(at: Git, repo: Path, commit: str) -> frozenset[str]:
    """The ids of a commit, its tree, and everything in it; not of its parents."""
    listed = at.must(repo, "rev-list", "--objects", "--no-object-names", "--no-walk", commit)
    return frozenset(listed.decode().split())

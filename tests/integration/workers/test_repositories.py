import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farm.errors import RemoteRefused, RepositoryError
from farm.tree import Entry, Mode
from workers.gitrepo import Author, Git
from workers.repositories import Repositories
from workers.tentative import Tentative

GitCommand = Callable[..., str]


def test_branches_tags_ids_and_the_default_branch_resolve(
    repositories: Repositories, source: Path, git: GitCommand
) -> None:
    one, two = git(source, "rev-parse", "trunk"), git(source, "rev-parse", "side/branch")
    repo = str(source)
    assert repositories.resolve(repo, None) == one
    assert repositories.resolve(repo, "HEAD") == one
    assert repositories.resolve(repo, "v1") == one
    assert repositories.resolve(repo, "side/branch") == two
    assert repositories.resolve(repo, "side/branch~1") == one
    assert repositories.resolve(repo, two[:10]) == two
    git(source, "commit", "-q", "--allow-empty", "-m", "three")
    assert repositories.resolve(repo, "trunk") == git(source, "rev-parse", "trunk") != one


def test_a_known_commit_needs_no_remote(repositories: Repositories, source: Path) -> None:
    commit = repositories.resolve(str(source), None)
    (source / ".git").rename(source / "gone")
    assert repositories.resolve(str(source), commit) == commit
    assert "a.py" in repositories.read_commit_tree(str(source), commit)


@pytest.mark.parametrize("revision", ["--upload-pack=x", "a..b", "x@{1}", "", "a b", ":/x", "a.lock", "/x", "é"])
def test_revisions_that_are_something_else_are_refused(
    repositories: Repositories, source: Path, revision: str
) -> None:
    with pytest.raises(RepositoryError, match="is not a branch, tag or commit id"):
        repositories.resolve(str(source), revision)


def test_missing_repos_and_revisions_say_what_to_do(
    repositories: Repositories, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(RepositoryError, match="side/branch, trunk: check --base"):
        repositories.resolve(str(source), "nope")
    with pytest.raises(RepositoryError, match="has no revision '0000"):
        repositories.resolve(str(source), "0" * 40)
    with pytest.raises(RepositoryError, match="neither a git URL nor a path that exists"):
        repositories.resolve(str(tmp_path / "nowhere"), None)
    with pytest.raises(RepositoryError, match="neither a git URL"):
        repositories.resolve("ext::sh -c true", None)
    with pytest.raises(RepositoryError, match=r"cannot be read as a git repo.*check --repo"):
        repositories.resolve(str(tmp_path / "gym"), None)
    with pytest.raises(RepositoryError, match="no built-in repo 'other'; there is gym"):
        repositories.resolve("builtin:other", None)
    left = [path.name for path in (tmp_path / "state" / "mirrors").iterdir() if path.suffix == ".git"]
    assert len(left) == 1
    assert left[0].startswith("source-")


@pytest.mark.parametrize("repo", ["source", "builtin:gym"])
def test_a_repo_that_is_looked_at_tentatively_stays_only_when_it_is_kept(
    tmp_path: Path, source: Path, gym: Path, repo: str
) -> None:
    state = tmp_path / "new" / "state"
    name = repo if repo.startswith("builtin:") else str(source)

    def look() -> tuple[Repositories, str]:
        config = state / "git.config"
        tentative = Tentative(state, beside=(config,))
        made = Repositories(state, Git(config, os.environ), {"gym": gym}, tentative=tentative)
        return made, made.resolve(name, None)

    refused, commit = look()
    assert refused.read_commit_tree(name, commit)
    refused.discard()
    assert not state.parent.exists()
    kept, again = look()
    kept.keep()
    assert again == commit
    assert kept.read_commit_tree(name, commit)
    assert kept.resolve(name, None) == commit
    worker = Repositories(state, Git(state / "git.config", os.environ), {"gym": gym})
    assert worker.location(name) == kept.location(name)
    (mirror,) = (state / "mirrors").glob("*.git")
    assert worker.resolve(name, commit) == commit
    assert list((state / "mirrors").glob("*.git")) == [mirror]
    assert not list(state.glob("new-*"))


def test_a_commit_is_read_byte_for_byte(repositories: Repositories, source: Path) -> None:
    tree = repositories.read_commit_tree(str(source), repositories.resolve(str(source), None))
    assert tree["a.py"] == Entry(Mode.FILE, (source / "a.py").read_bytes().replace(b"\r\n", b"\n"))
    assert tree["run.sh"].mode is Mode.EXECUTABLE
    assert tree["d/l"] == Entry(Mode.LINK, b"../a.py")
    assert tree["raw\udcff"].data == bytes(range(256))
    assert tree['uml\u00e4ut "q" \t\n'].data == b"n"


def test_a_submodule_is_refused_by_name(repositories: Repositories, source: Path, git: GitCommand) -> None:
    commit = git(source, "rev-parse", "trunk")
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{commit},third/party")
    git(source, "commit", "-qm", "sub")
    with pytest.raises(RepositoryError, match=r"'third/party' of .* is a submodule"):
        repositories.read_commit_tree(str(source), repositories.resolve(str(source), "trunk"))


def test_sixteen_checkouts_at_once_agree(tmp_path: Path, source: Path, gym: Path) -> None:
    def one(_: int) -> tuple[str, int]:
        mine = Repositories(tmp_path / "state", Git(tmp_path / "state" / "gitconfig", os.environ), {"gym": gym})
        commit = mine.resolve(str(source), "trunk")
        return commit, len(mine.read_commit_tree(str(source), commit))

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(one, range(16)))) == 1


def test_a_hostile_environment_and_config_change_nothing(
    tmp_path: Path, source: Path, gym: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[core]\n\tautocrlf = true\n\thooksPath = /nonexistent\n[alias]\n\tx = !false\n"
    )
    hostile = {"HOME": str(home), "GIT_DIR": "/nonexistent", "GIT_INDEX_FILE": "/nonexistent"}
    for name, value in (hostile | {"GIT_OBJECT_DIRECTORY": "/nonexistent"}).items():
        monkeypatch.setenv(name, value)
    mine = Repositories(tmp_path / "state", Git(tmp_path / "state" / "gitconfig", os.environ), {"gym": gym})
    commit = mine.resolve(str(source), "trunk")
    assert mine.read_commit_tree(str(source), commit)["a.py"].data == b"x = 1\n"


def test_a_written_commit_holds_exactly_the_tree_and_equal_inputs_give_an_equal_id(
    repositories: Repositories, source: Path
) -> None:
    repo = str(source)
    base = repositories.resolve(repo, None)
    tree = repositories.read_commit_tree(repo, base)
    changed = {path: entry for path, entry in tree.items() if path != "a.py"} | {
        "a.py/now a folder": Entry(Mode.FILE, b""),
        "new\\x": Entry(Mode.EXECUTABLE, b"data\r\n"),
    }
    first = repositories.write_commit(repo, changed, base, "s\n\nbody\n", Author(), 1_800_000_000)
    assert repositories.read_commit_tree(repo, first) == changed
    assert repositories.write_commit(repo, changed, base, "s\n\nbody\n", Author(), 1_800_000_000) == first
    assert repositories.write_commit(repo, changed, base, "s\n\nbody\n", Author(), 1_800_000_001) != first


def test_a_push_is_idempotent_and_replaces_only_what_it_expects(
    repositories: Repositories, source: Path, git: GitCommand
) -> None:
    repo, branch = str(source), "farm/cutile-rs/relu"
    base = repositories.resolve(repo, None)
    tree = repositories.read_commit_tree(repo, base)
    first = repositories.write_commit(repo, tree, base, "1", Author(), 1)
    second = repositories.write_commit(repo, tree, base, "2", Author(), 2)
    repositories.push(repo, first, branch, None, None)
    repositories.push(repo, first, branch, None, None)
    assert git(source, "rev-parse", branch) == first
    with pytest.raises(RemoteRefused, match=f"holds {first}, expected nothing"):
        repositories.push(repo, second, branch, None, None)
    repositories.push(repo, second, branch, None, first)
    assert git(source, "rev-parse", branch) == second == repositories.remote_branch(repo, branch)
    assert git(source, "rev-parse", "trunk") == base


def test_a_branch_is_replaced_while_it_holds_what_we_made_and_nobody_changed(
    repositories: Repositories, source: Path, git: GitCommand, tmp_path: Path
) -> None:
    repo, branch = str(source), "farm/cutile-rs/relu"
    base = repositories.resolve(repo, None)
    tree = repositories.read_commit_tree(repo, base)
    ours = repositories.write_commit(repo, tree, base, "1", Author(), 1)
    assert repositories.replaceable(repo, branch, repo) is None
    repositories.push(repo, ours, branch, None, None)
    assert repositories.replaceable(repo, branch, repo) == ours

    git(tmp_path, "clone", "-q", "-b", branch, repo, "desk")
    for words in (("--allow-empty", "-m", "mine"), ("--allow-empty", "--amend", "-m", "better")):
        git(tmp_path / "desk", "reset", "-q", "--hard", ours)
        git(tmp_path / "desk", "commit", "-q", *words)
        git(tmp_path / "desk", "push", "-qf", "origin", branch)
        theirs = git(source, "rev-parse", branch)
        with pytest.raises(
            RemoteRefused, match=rf"holds {theirs[:12]} by .*, which the farm did not make.*--push-to"
        ):
            repositories.replaceable(repo, branch, repo)
    assert git(source, "rev-parse", branch) == theirs


@pytest.mark.parametrize(
    "branch",
    [
        "trunk",
        "main",
        "farm/x",
        "farm/a/../b",
        "farm/a/b.lock",
        "farm/a/-b",
        "farm/a/b/c",
        "-f",
        "farm/a/b:x",
    ],
)
def test_other_branches_are_never_pushed(repositories: Repositories, source: Path, branch: str) -> None:
    base = repositories.resolve(str(source), None)
    with pytest.raises(RemoteRefused, match="only farm/"):
        repositories.push(str(source), base, branch, None, None)


def test_a_default_branch_is_not_pushed_even_when_it_looks_like_ours(
    repositories: Repositories, source: Path, git: GitCommand
) -> None:
    git(source, "checkout", "-qb", "farm/cutile-rs/relu")
    base = repositories.resolve(str(source), "trunk")
    commit = repositories.write_commit(str(source), {}, base, "x", Author(), 1)
    with pytest.raises(RemoteRefused, match="is the default branch"):
        repositories.push(str(source), commit, "farm/cutile-rs/relu", None, base)


def test_a_remote_that_refuses_is_quoted(repositories: Repositories, source: Path, tmp_path: Path) -> None:
    hook = source / ".git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho this remote is read-only >&2\nexit 1\n")
    hook.chmod(0o755)
    base = repositories.resolve(str(source), None)
    with pytest.raises(RemoteRefused, match=r"this remote is read-only.*--push-to"):
        repositories.push(str(source), base, "farm/cutile-rs/relu", None, None)
    with pytest.raises(RemoteRefused, match="does not answer"):
        repositories.push(str(source), base, "farm/cutile-rs/relu", str(tmp_path / "gym"), None)


def test_asking_whether_a_remote_takes_a_branch_changes_nothing_there(
    repositories: Repositories, source: Path, git: GitCommand, tmp_path: Path
) -> None:
    base = repositories.resolve(str(source), None)
    repositories.check_push(str(source), base, "farm/cutile-rs/relu", None)
    assert git(source, "for-each-ref", "refs/heads/farm") == ""
    with pytest.raises(RemoteRefused, match="does not answer"):
        repositories.check_push(str(source), base, "farm/cutile-rs/relu", str(tmp_path / "gym"))


@pytest.fixture
def served(source: Path) -> Iterator[str]:
    """The target repo behind a git server that takes no pushes; its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ("--listen=127.0.0.1", f"--port={port}", f"--base-path={source.parent}")
    command = ["git", "daemon", "--export-all", *where]
    # Its child serves; both are in a group of their own, so that both end.
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
        yield f"git://127.0.0.1:{port}/{source.name}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=20)


def test_a_server_that_takes_no_pushes_is_read_from_and_named_when_it_refuses(
    repositories: Repositories, source: Path, git: GitCommand, served: str
) -> None:
    base = repositories.resolve(served, None)
    assert base == git(source, "rev-parse", "trunk")
    with pytest.raises(RemoteRefused, match=r"takes no pushes: .*give --push-to"):
        repositories.check_push(served, base, "farm/cutile-rs/relu", None)
    commit = repositories.write_commit(served, {}, base, "x", Author(), 1)
    with pytest.raises(RemoteRefused, match=r"did not take 'farm/cutile-rs/relu'.*give --push-to"):
        repositories.push(served, commit, "farm/cutile-rs/relu", None, None)
    assert git(source, "for-each-ref", "refs/heads/farm") == ""


def test_a_folder_that_the_pushing_user_may_not_write_is_named_when_it_refuses(gym: Path, git: GitCommand) -> None:
    """Root may write everywhere: as root, git runs as somebody else from the moment when it pushes."""
    with tempfile.TemporaryDirectory(prefix="tf-remote-") as name:
        place = Path(name)
        place.chmod(0o755)
        remote = place / "remote.git"
        remote.mkdir()
        git(remote, "init", "-q", "--bare", "-b", "main")
        environ = dict(os.environ)
        if os.geteuid() == 0:
            program = shutil.which("git")
            (place / "bin").mkdir()
            other = place / "bin" / "git"
            other.write_text(f'#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups {program} "$@"\n')
            other.chmod(0o755)
            environ["PATH"] = f"{other.parent}:{environ['PATH']}"
        else:
            for folder in (remote, *(path for path in remote.rglob("*") if path.is_dir())):
                folder.chmod(0o555)
        state = place / "state"
        own = Repositories(state, Git(state / "git.config", os.environ), {"gym": gym})
        base = own.resolve("builtin:gym", None)
        (state / "git.config").chmod(0o644)
        pushing = Repositories(state, Git(state / "git.config", environ), {"gym": gym})
        with pytest.raises(
            RemoteRefused, match=r"unable to create temporary object.*check its permissions or give --push-to"
        ):
            pushing.push("builtin:gym", base, "farm/cutile-rs/op", str(remote), None)
        assert git(remote, "for-each-ref") == ""
        for folder in (remote, *(path for path in remote.rglob("*") if path.is_dir())):
            folder.chmod(0o755)


def test_a_built_in_repo_is_the_same_commit_each_time_and_takes_branches(
    repositories: Repositories, tmp_path: Path, gym: Path, git: GitCommand
) -> None:
    commit = repositories.resolve("builtin:gym", None)
    other = Repositories(tmp_path / "b", Git(tmp_path / "b" / "gitconfig", {}), {"gym": gym})
    assert other.resolve("builtin:gym", "main") == commit
    assert repositories.read_commit_tree("builtin:gym", commit) == {"op.py": Entry(Mode.FILE, b"y = 2\n")}
    landed = repositories.write_commit("builtin:gym", {}, commit, "x", Author(), 1)
    repositories.push("builtin:gym", landed, "farm/cutile-rs/op", None, None)
    assert repositories.resolve("builtin:gym", None) == commit
    place = tmp_path / "state" / "builtin" / "gym.git"
    assert git(place, "for-each-ref", "--format=%(refname)") == "refs/heads/farm/cutile-rs/op\nrefs/heads/main"

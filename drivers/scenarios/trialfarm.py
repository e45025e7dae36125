"""A farm on a state folder of its own, driven by the `farm` command in processes of its own."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from containers.engine.docker_engine import LABEL
from drivers.scenarios.canary import CANARY
from drivers.scenarios.play import Play
from drivers.scenarios.repositories import gym, texts
from farm.errors import FarmError
from farm.settings import KEYS, PREFIX
from farm.tree import Entry, Tree
from workers.assembly import farm_id
from workers.gitrepo import Author, Git, write_commit

#: 1 January 2026, 00:00 UTC.
_DATE_S = 1_767_225_600
#: No waiting for the sake of others: the server is ours.
_QUICK: Mapping[str, Mapping[str, str | int | float]] = {
    "gateway": {
        "requests_per_minute": 100_000,
        "input_tokens_per_minute": 100_000_000,
        "output_tokens_per_minute": 100_000_000,
        "backoff_s": 0.1,
        "backoff_most_s": 1.0,
        "rest_s": 3.0,
    },
    "worker": {"waiting_poll_s": 1.0, "reconcile_s": 1.0},
    "limits": {"min_free_bytes": 1, "transient_backoff_s": 0.5},
}


class TrialFarm:
    """One play's farm: its state, its target repo, its commands."""

    def __init__(self, folder: Path, environ: Mapping[str, str], play: Play, url: str) -> None:
        """`url`: where the model API is."""
        self.state = folder / "state"
        self.target = folder / "target.git"
        self._log = folder / "commands.log"
        kept = {name: value for name, value in environ.items() if name not in KEYS and not _own(name)}
        given = {
            section: {**_QUICK.get(section, {}), **play.settings.get(section, {})}
            for section in {**_QUICK, **play.settings}
        }
        given["gateway"]["url"] = url
        self._env = {
            **kept,
            f"{PREFIX}STATE": str(self.state),
            **{
                f"{PREFIX}{section.upper()}__{name.upper()}": str(value)
                for section, values in given.items()
                for name, value in values.items()
            },
            KEYS[0]: CANARY,
        }
        self._commit(folder, environ, play)

    def command(self, *words: str, codes: tuple[int, ...] = (0,), limit_s: float = 300.0) -> Any:
        """What a command prints as JSON. Raises FarmError when it ends with another code."""
        argv = (sys.executable, "-P", "-c", "from drivers.cli import main; main()", *words, "--json")
        done = subprocess.run(argv, env=self._env, capture_output=True, text=True, timeout=limit_s, check=False)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ farm {' '.join(words)}\n{done.stdout}{done.stderr}")
        if done.returncode not in codes:
            raise FarmError(f"farm {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def submit(self, play: Play) -> str:
        """Enqueue the play's ops; the run's id."""
        said = self.command(
            "submit",
            "--ops",
            ",".join(play.names),
            "--repo",
            str(self.target),
            "--recipe",
            play.recipe,
            *play.options,
        )
        return str(said["id"])

    def down(self) -> None:
        """Stop everything; what is left of boxes goes too."""
        self.command("down")
        for box in self.boxes("-aq"):
            subprocess.run(("docker", "rm", "-f", box), capture_output=True, check=False)

    def kill_boxes(self, purpose: str) -> int:
        """SIGKILL to the farm's boxes of a purpose; how many there were."""
        boxes = self.boxes("-q", "--filter", f"label={LABEL}purpose={purpose}")
        for box in boxes:
            subprocess.run(("docker", "kill", box), capture_output=True, check=False)
        return len(boxes)

    def boxes(self, *options: str) -> list[str]:
        """Ids of the farm's boxes."""
        argv = ("docker", "ps", *options, "--filter", f"label={LABEL}farm={farm_id(self.state)}")
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()

    def branches(self) -> tuple[str, ...]:
        """The farm's branches in the target repo."""
        said = subprocess.run(
            ("git", f"--git-dir={self.target}", "for-each-ref", "--format=%(refname:short)", "refs/heads"),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return tuple(name for name in said.stdout.split() if name.startswith("farm"))

    def _commit(self, folder: Path, environ: Mapping[str, str], play: Play) -> None:
        at = Git(folder / "git.config", environ)
        at.must(None, "init", "--quiet", "--bare", "--initial-branch=main", str(self.target))
        tree = gym() if play.recipe == "cutile-rs" else texts(play.texts)
        write_commit(
            at, self.target, "refs/heads/main", _edited(tree, play), None, "target repo", Author(), _DATE_S
        )


def _edited(tree: Tree, play: Play) -> Tree:
    changed = dict(tree)
    for path, old, new in play.edits:
        text = changed[path].data.decode()
        if old not in text:
            raise FarmError(f"scenario {play.name}: {path} does not hold {old!r}")
        changed[path] = Entry(changed[path].mode, text.replace(old, new).encode())
    return changed


def _own(name: str) -> bool:
    return name.startswith(PREFIX) and name not in (f"{PREFIX}TOOLCHAIN", f"{PREFIX}CONFIG")

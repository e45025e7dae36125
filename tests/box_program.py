"""The box's programs on folders of a test, with the real toolchain and no container: for code that is our own."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from containers.box.files import write_json
from containers.toolchain import Toolchain
from farm.capture import read_tree
from farm.orders import BoxOrder
from farm.pipeline.stage import ExecutorKind, Stage
from farm.recipes import load, read_table
from farm.tree import write_tree
from tests.builders import order

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "config" / "recipes" / "cutile-rs"
MINIGYM = ROOT / "tests" / "data" / "minigym"
CAPS = {Stage.A: 1, Stage.B: 2, Stage.C: 1, Stage.D: 2, Stage.E: 2, Stage.F: 1}


class Said(NamedTuple):
    """How a validator ended."""

    code: int
    message: str  #: its last line
    lines: tuple[str, ...]  #: those before


class Folders:
    """An order, a workspace and an artifact folder."""

    def __init__(self, root: Path, toolchain: Toolchain) -> None:
        self.root = root
        self.toolchain = toolchain
        self.work, self.out = root / "work", root / "out"

    def begin(self, op: str, **changes: object) -> BoxOrder:
        """The bare base of an op of the built-in repository, and an order for programs."""
        conversion = load("cutile-rs", read_table((RECIPE / "recipe.toml").read_text(encoding="utf-8")))
        tree = read_tree(MINIGYM)
        found = next(item for item in conversion.inventory(tree) if item.name == op)
        write_tree(conversion.bare(tree, found).tree, self.work)
        for folder in (self.out, self.root / "tmp"):
            folder.mkdir(parents=True)
        made = order(
            op=op,
            executors=dict.fromkeys(Stage, ExecutorKind.PROGRAM),
            caps=CAPS,
            stage_limit_s=600.0,
            **changes,
        )
        write_json(self.root / "order.json", made)
        return made

    def copy(self, root: Path) -> "Folders":
        """Folders of the same content, to be changed by one test."""
        shutil.copytree(self.root, root, symlinks=True, ignore=shutil.ignore_patterns("tmp"))
        (root / "tmp").mkdir()
        return Folders(root, self.toolchain)

    def run(self, *module: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A module of the box with its places."""
        places = {
            "TILEFARM_ORDER": str(self.root / "order.json"),
            "TILEFARM_WORK": str(self.work),
            "TILEFARM_OUT": str(self.out),
            "TILEFARM_RECIPE": str(RECIPE),
            "TILEFARM_TOOLCHAIN": str(self.toolchain.root),
            "TMPDIR": str(self.root / "tmp"),
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.run(
            (str(self.toolchain.python), "-P", "-m", *module),
            cwd=self.root,
            env={**os.environ, **places, **environment},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def validate(self, name: str, **environment: str) -> Said:
        """Run one validator."""
        done = self.run("containers.box.validate", name, **environment)
        *before, last = done.stdout.splitlines() or [done.stderr]
        return Said(done.returncode, last, tuple(before))

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that is there in a file below the root."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert old in text, f"{path} does not hold {old!r}"
        file.write_text(text.replace(old, new), encoding="utf-8")

"""The library of a tree, built in a box of its own: for implementations that have landed, which no job builds."""

import json
import lzma
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from containers.box.files import parse_json
from containers.engine import Engine
from containers.spec import BoxFolders, BoxSettings
from containers.warm import ensure_warm
from farm.capture import read_tree
from farm.codec import encode
from farm.errors import BuildFailed
from farm.hiding import Bare
from farm.orders import LIBRARY, BoxOrder, BuildReport, Purpose
from farm.pipeline.stage import Stage
from farm.recipe import Recipe
from farm.tree import Mode, Tree, tree_digest
from workers.boxes import Boxes, Sight
from workers.preparation import make_out
from workers.workspace import write_box_tree

RESULT = "build.json"
#: A build takes seconds; a box that builds for longer hangs.
LIMIT_S = 600.0
_WAIT_S = 0.5


class Builder:
    """Builds libraries, each tree's once: what was built is kept in the state folder."""

    def __init__(
        self, *, engine: Engine, settings: BoxSettings, folder: Path, lib: Path, environ: dict[str, str]
    ) -> None:
        """`folder` is this builder's own; `settings` name a farm of its own, which no worker reaps."""
        self._settings = settings
        self._boxes = Boxes(engine=engine, settings=settings, lock=folder / "boxes.lock", most=1)
        self._folder = folder
        self._lib = lib
        self._environ = environ

    def build(
        self, tree: Tree, bare: Bare, recipe: Recipe, recipe_folder: Path, gpu: str, say: Callable[[str], None]
    ) -> bytes:
        """The library of a tree of target repo files. Raises BuildFailed with the compiler's first error."""
        toolchain = self._settings.toolchain
        key = tree_digest(tree)[:16]
        at = self._folder / f"{key}-{toolchain.record.digest[:8]}"
        kept = at / LIBRARY
        if kept.is_file():
            return lzma.decompress(kept.read_bytes())
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir(parents=True)
        ensure_warm(bare.crate, toolchain, self._environ, say)
        write_box_tree(tree, at / "work")
        make_out(at / "out")
        order = _order(recipe, gpu, key)
        (at / "order.json").write_text(json.dumps(encode(order), indent=1), encoding="utf-8")
        say("building the library in a box")
        data = self._run(order, at, recipe_folder)
        shutil.rmtree(at / "work")
        kept.write_bytes(data)
        return lzma.decompress(data)

    def _run(self, order: BoxOrder, at: Path, recipe_folder: Path) -> bytes:
        folders = BoxFolders(
            workspace=at / "work", out=at / "out", order=at / "order.json", lib=self._lib, recipe=recipe_folder
        )
        while True:
            look = self._boxes.look(order, folders, result=RESULT, limit_s=LIMIT_S)
            if look.sight not in (Sight.FULL, Sight.RUNNING):
                break
            time.sleep(_WAIT_S)
        if look.sight is not Sight.DONE:
            reason = "it left no result" if look.ending is None else look.ending.summary
            raise BuildFailed(f"the box that builds the library ended: {reason}\n{look.log[-2000:]}")
        left = read_tree(at / "out")
        report = parse_json(left[RESULT].data, BuildReport)
        if report.diagnosis is not None:
            raise BuildFailed(f"{report.diagnosis.summary}; {report.diagnosis.next_step}")
        if LIBRARY not in left or left[LIBRARY].mode is Mode.LINK:
            raise BuildFailed("the box says that it built and left no library; report this as a defect")
        return left[LIBRARY].data


def _order(recipe: Recipe, gpu: str, key: str) -> BoxOrder:
    return BoxOrder(
        purpose=Purpose.BUILD,
        run="build",
        job=f"build-{key}",
        attempt=1,
        op="",
        recipe=recipe.name,
        conversion=recipe.conversion,
        source=recipe.source,
        target=recipe.target,
        gpu=gpu,
        executors=dict(recipe.executors),
        caps=dict.fromkeys(Stage, 1),
        stage_limit_s=recipe.limits.stage_limit_s,
        previous_trace=None,
    )

"""What is no program is refused where it is written and where it is judged, however warm the caches are."""

import json
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from containers.access import box_user
from containers.box.executors import Script, ScriptedStep
from containers.engine.docker_engine import DockerEngine
from containers.lib import ensure_lib
from containers.spec import BoxFolders, BoxSettings, box_name, box_spec
from containers.toolchain import Toolchain
from farm.codec import decode, encode
from farm.fault import Fault, Owner
from farm.gates import GateReport, Ruling
from farm.orders import BoxOrder, BoxResult, Purpose
from farm.pipeline.stage import ExecutorKind, Reply, Stage, Verdict
from tests.acceptance.conftest import JOB_LIMIT_S, SIX, Landed
from workers.workspace import give_to_box

pytestmark = [pytest.mark.docker, pytest.mark.redis, pytest.mark.toolchain]

ROOT = Path(__file__).parents[2]
KERNELS = "src/minigym/ops/cutile_rs/relu_kernel"


class Judge:
    """Runs an order's box on a tree and gives what it wrote."""

    def __init__(self, engine: DockerEngine, toolchain: Toolchain, root: Path) -> None:
        self._engine = engine
        self._settings = BoxSettings(farm=f"tests-{uuid.uuid4().hex[:8]}", toolchain=toolchain)
        self._root = root

    def order(self, landed: Landed, purpose: Purpose) -> BoxOrder:
        """An order like the one that the landed job's boxes had."""
        kept = dict(line.split(" sha256:") for line in landed.farm.document("show", landed.job["id"])["artifacts"])
        data = (landed.farm.state / "artifacts" / kept["order.json"][:2] / kept["order.json"]).read_text()
        order = decode(BoxOrder, json.loads(data))
        return replace(order, purpose=purpose, job=f"test.{uuid.uuid4().hex[:8]}", patch_sha256="0" * 64)

    def run(self, order: BoxOrder, tree: Path, result: str, extra: Path | None = None) -> Any:
        """The box's record."""
        out, file = self._root / "out", self._root / "order.json"
        out.mkdir()
        file.write_text(json.dumps(encode(order)))
        for folder in (tree, out):
            give_to_box(folder)
        folders = BoxFolders(
            workspace=tree,
            out=out,
            order=file,
            lib=ensure_lib(self._root / "lib"),
            recipe=ROOT / "config" / "recipes" / order.recipe,
            extra=extra,
        )
        name = box_name(self._settings.farm, order)
        status = self._engine.ensure(box_spec(order, folders, self._settings))
        end = time.monotonic() + JOB_LIMIT_S
        while status is not None and status.running and time.monotonic() < end:
            time.sleep(0.2)
            status = self._engine.inspect(name)
        log = self._engine.logs(name, tail=50)
        self._engine.remove(name, grace_s=0)
        assert (out / result).exists(), f"{status}\n{log}"
        return json.loads((out / result).read_text())


@pytest.fixture
def root() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tf-gate-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def judge(engine: DockerEngine, toolchain: Toolchain, root: Path) -> Judge:
    assert box_user(0, 0).uid != 0
    return Judge(engine, toolchain, root)


def checked_out(landed: Landed, root: Path, revision: str) -> Path:
    tree = root / "tree"
    clone = ["git", "-c", "safe.directory=*", "clone", "-q", "-b", revision, str(landed.repo), str(tree)]
    subprocess.run(clone, check=True)
    shutil.rmtree(tree / ".git")
    return tree


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("kernel.rs", None, "this is not Rust\n"),
        ("ffi.rs", None, "fn broken( {\n"),
        ("ffi.rs", "pub ", "pub pub "),
    ],
    ids=["kernel", "host", "one-word"],
)
def test_the_gate_refuses_what_does_not_compile(
    landed: Landed, judge: Judge, root: Path, file: str, old: str | None, new: str
) -> None:
    tree = checked_out(landed, root, landed.job["branch"])
    path = tree / KERNELS / file
    path.write_text(new if old is None else path.read_text().replace(old, new, 1))
    report = decode(GateReport, judge.run(judge.order(landed, Purpose.GATE), tree, "gates.json"))
    assert report.diagnosis is not None
    assert report.diagnosis.fault is Fault.KERNEL
    assert file in report.diagnosis.summary
    assert {gate.ruling for gate in report.gates} == {Ruling.NOT_RUN}
    assert report.certificate is None


def test_the_pipeline_refuses_a_scripted_kernel_that_is_no_rust(landed: Landed, judge: Judge, root: Path) -> None:
    """The scripted executor claims that its kernel compiles; the next stage's build finds out."""
    after = checked_out(landed, root, landed.job["branch"]).rename(root / "after")
    tree = checked_out(landed, root, "main")
    files = {path: (after / path).read_text() for path in SIX}
    files[f"{KERNELS}/kernel.rs"] = "this is not Rust\n"
    claim = Reply(verdict=Verdict.COMPILED, owner=None, fault=None, fail_class=None, summary="believe me")
    extra = root / "extra"
    extra.mkdir()
    script = Script(steps=(ScriptedStep(stage=Stage.B, visit=1, reply=claim, files=files),))
    (extra / "script.json").write_text(json.dumps(encode(script)))
    order = judge.order(landed, Purpose.PIPELINE)
    executors = {**order.executors, Stage.B: ExecutorKind.SCRIPTED}
    order = replace(order, executors=executors, script="/farm/extra/script.json", patch_sha256=None)
    result = decode(BoxResult, judge.run(order, tree, "result.json", extra))
    assert not result.complete
    replies = [record.reply for record in result.records if record.stage is Stage.D]
    assert [(reply.verdict, reply.owner, reply.fault) for reply in replies] == [
        (Verdict.FAIL, Owner.KERNEL, Fault.KERNEL)
    ]
    assert "kernel.rs" in replies[0].summary

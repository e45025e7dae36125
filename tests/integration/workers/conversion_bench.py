"""A real spine over git, ledger and files; boxes are plain functions on the folders of a fake engine."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from containers.engine import BoxSpec
from containers.engine.fake_engine import FakeEngine, FakeExit
from containers.lib import ensure_lib
from containers.spec import BoxSettings
from containers.toolchain import Toolchain
from farm import crate
from farm.bundle import Bundle
from farm.capture import read_tree
from farm.codec import decode, encode
from farm.errors import UsageError
from farm.gates import Basis, Certificate, GateName, GateReport, GateResult, RowProof, Ruling, SignatureProof
from farm.job import Accept, Job, JobState
from farm.layout import find_package
from farm.ledger import TRACE, Ledger
from farm.mountindex import Mount
from farm.orders import BoxOrder, BoxResult, Purpose
from farm.recipes.cutile_rs.inventory import test_files as files_of_tests
from farm.recipes.cutile_rs.registration import add_import, add_module
from farm.recipes.cutile_rs.syntax import read_source
from farm.recipes.cutile_rs.testfile import add_backend
from farm.settings import Gpu, Limits, Settings, Worker
from farm.store import MemoryStore
from tests import builders
from tests.unit.recipes.cutile_rs.builders import layout
from workers.agents import Agents
from workers.benches import Benches
from workers.boxes import Boxes
from workers.conversion import Conversion
from workers.devices import HostDevices
from workers.frozen import FrozenRecipes
from workers.gitrepo import Git
from workers.gpu import GpuGates
from workers.leaks import LeakScanner
from workers.preparation import Preparer
from workers.repositories import Repositories
from workers.runtime import Runtime
from workers.tasks import Due, advance

ROOT = Path(__file__).parents[3]
RECIPES = ROOT / "config" / "recipes"
MINIGYM = ROOT / "tests" / "data" / "minigym"
FARM = "bench"

Program = Callable[[BoxSpec], FakeExit | None]


def folder(spec: BoxSpec, target: str) -> Path:
    """The host's folder of a mount."""
    return next(mount.source for mount in spec.mounts if mount.target == target)


def order_of(spec: BoxSpec) -> BoxOrder:
    return decode(BoxOrder, json.loads(folder(spec, "/farm/order.json").read_text()))


def write_patch(work: Path, op: str = "relu") -> None:
    """The six files of an op, with nothing of use in the new ones."""
    tree, known = dict(read_tree(work)), layout()
    package = find_package(tree, known)
    registration, modules = package.path(known.registration), package.path(known.modules)
    (work / registration).write_bytes(add_import(read_source(tree, registration), op, known.target))
    (work / modules).write_bytes(add_module(tree[modules].data, op, package))
    for path in files_of_tests(tree, package, op):
        (work / path).write_bytes(add_backend(read_source(tree, path), package).data)
    kernel = work / package.target_folder / f"{op}_kernel"
    kernel.mkdir()
    (kernel / "kernel.rs").write_text("// kernel\n")
    (kernel / "ffi.rs").write_text("// host\n")
    (work / package.target_folder / f"{op}.py").write_text('"""Wrapper."""\n')


def finish(spec: BoxSpec, result: BoxResult | GateReport) -> FakeExit:
    """Write what ends a box's work."""
    name = "result.json" if isinstance(result, BoxResult) else "gates.json"
    (folder(spec, "/out") / name).write_text(json.dumps(encode(result)))
    return FakeExit(log="the box's last words\n")


def converts(spec: BoxSpec) -> FakeExit:
    """The pipeline that works."""
    write_patch(folder(spec, "/work"), order_of(spec).op)
    logs = folder(spec, "/out") / "logs"
    logs.mkdir()
    (logs / "A-1.log").write_text("traced\n")
    return finish(spec, BoxResult(complete=True, records=(), diagnosis=None))


def certifies(spec: BoxSpec) -> FakeExit:
    """The judge that finds everything the same."""
    return finish(spec, certified(order_of(spec).patch_sha256 or ""))


def certified(patch_sha256: str) -> GateReport:
    """A complete report: one row, one signature."""
    gates = tuple(
        GateResult(gate=gate, ruling=Ruling.PASS, basis=Basis.CERTIFIED, summary="certified 1/1")
        for gate in GateName
    )
    certificate = Certificate(
        op="relu",
        gpu="sm_90",
        rows=(RowProof(key="t[0]", same=True, launches=1, difference=None),),
        signatures=(SignatureProof(signature="s", kernel="k", entry="e", same=True, rules=(), difference=None),),
        versions={},
        patch_sha256=patch_sha256,
    )
    return GateReport(gates=gates, certificate=certificate, rows_collected=1, rows_expected=1, diagnosis=None)


class Bench:
    """One job of the built-in repo, or of `repo`, and the means to take its steps."""

    def __init__(
        self,
        tmp_path: Path,
        *,
        pipeline: Program = converts,
        gate: Program = certifies,
        accept: Accept = Accept.CERTIFIED,
        repo: str = "builtin:minigym",
        push_to: str | None = None,
        most: int = 2,
        min_free_bytes: int = 0,
        transient_retries: int = 0,
        recipe: str = "cutile-rs",
        ops: tuple[str, ...] = ("relu",),
        mounts: tuple[Mount, ...] = (),
        gpu: Gpu | None = None,
    ) -> None:
        self.gpu = gpu or Gpu(devices=())
        self.mounts = mounts
        self.bundles: Callable[[Job, Path], Bundle] = no_bundle
        self.programs = {Purpose.PIPELINE: pipeline, Purpose.GATE: gate}
        self.state = tmp_path / "state"
        self.state.mkdir()
        # A minute old at its start, so that a look at a running box does not linger.
        self.engine = FakeEngine(
            lambda spec: self.programs[Purpose(spec.labels["purpose"])](spec), clock=lambda: time.time() - 60
        )
        self.store = MemoryStore()
        self.git = Git(self.state / "git.config", {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
        self.repositories = Repositories(self.state, self.git, {"minigym": MINIGYM})
        self.toolchain = _toolchain(tmp_path / "toolchain")
        self.boxes = Boxes(
            engine=self.engine,
            settings=BoxSettings(farm=FARM, toolchain=self.toolchain),
            lock=self.state / "boxes.lock",
            most=most,
        )
        self.min_free_bytes = min_free_bytes
        self.settings = Settings(
            state=self.state,
            toolchain=self.toolchain.root,
            worker=Worker(lease_s=30.0, waiting_poll_s=0.01),
            limits=Limits(transient_backoff_s=0.0, transient_retries=transient_retries),
        )
        self.runtime = Runtime(self.settings, spine=lambda _, ledger: self.spine(ledger), listeners=())
        self.ledger = self.runtime.ledger
        run = self.ledger.submit(
            recipe=recipe,
            repo=repo,
            push_to=push_to,
            base=self.repositories.resolve(repo, None),
            accept=accept,
            attempts=2,
            ops=ops,
        )
        self.ids = [f"{run.id}.{op}" for op in ops]
        self.id = self.ids[0]
        self._warm()

    def spine(self, ledger: Ledger | None = None) -> Conversion:
        """A spine as another worker process would have it."""
        preparer = Preparer(
            repositories=self.repositories,
            git=self.git,
            recipes=FrozenRecipes(RECIPES, self.state),
            toolchain=self.toolchain,
            scanner=LeakScanner(self.state / "leak-index", None, self.mounts),
            environ={},
            min_free_bytes=self.min_free_bytes,
            gpu="sm_90",
        )
        self.preparer = preparer
        return Conversion(
            ledger=ledger or self.ledger,
            store=self.store,
            engine=self.engine,
            boxes=self.boxes,
            preparer=preparer,
            repositories=self.repositories,
            recipes=FrozenRecipes(RECIPES, self.state),
            lib=ensure_lib(self.state / "lib"),
            state=self.state,
            farm=FARM,
            versions={"rustc": "1"},
            gpu=self.gpu_gates(ledger or self.ledger),
            agents=Agents(self.settings, ledger or self.ledger),
        )

    def gpu_gates(self, ledger: Ledger) -> GpuGates:
        """What a GPU host does; bundles are those that a test puts into `bundles`."""
        devices = HostDevices(self.gpu)
        return GpuGates(
            ledger=ledger,
            store=self.store,
            benches=Benches(
                engine=self.engine,
                settings=BoxSettings(farm=FARM, toolchain=self.toolchain),
                gpu=self.gpu,
                devices=devices,
                lock=self.state / "gpu.lock",
                apart=False,
            ),
            devices=devices,
            settings=self.gpu,
            state=self.state,
            bundles=lambda run, job, at: self.bundles(job, at),
        )

    @property
    def job(self) -> Job:
        return self.ledger.job(self.id)

    def step(self, job_id: str | None = None) -> Due | None:
        """One hop, as a worker takes it, and the wait that it asks for."""
        due = advance(self.runtime, job_id or self.id)
        time.sleep(0.02 if due is None else due.after_s)
        return due

    def go(self, *until: JobState, most: int = 40) -> Job:
        """Hop until the job is in one of the states."""
        for _ in range(most):
            if self.job.state in until:
                return self.job
            self.step()
        raise AssertionError(f"{self.job.state}, not {until}: {self.job.summary}")

    def trace(self) -> dict[str, object]:
        """The trace that the failed job's attempt left."""
        kept = self.ledger.artifacts(self.id, attempt=self.job.attempt)
        document: dict[str, object] = json.loads(self.store.get(kept[TRACE]))
        return document

    def _warm(self) -> None:
        """Pretend that the crate's dependencies are compiled."""
        self.spine()
        subject = self.preparer.subject(self.ledger.run(self.job.run), self.job)
        key = crate.warm_key(
            subject.bare.crate["Cargo.toml"],
            subject.bare.crate.get("Cargo.lock"),
            rustc=self.toolchain.record.versions["rustc"],
            python_key=self.toolchain.record.python_key,
        )
        (self.toolchain.warm / key).mkdir(parents=True, exist_ok=True)


def no_bundle(job: Job, at: Path) -> Bundle:
    raise UsageError(f"{job.id} has no bundle")


def _toolchain(root: Path) -> Toolchain:
    made = builders.toolchain(root, rustc="1")
    (root / "venv" / "bin" / "python").symlink_to("/usr/bin/env")
    return made

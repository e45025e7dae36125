"""The gates of a waiting job in a box with a GPU: what `farm bundle`, `run` and `farm import` do by hand.

AWAITING_GPU takes a device's lease, a claim in the ledger, and writes the bundle; VERIFYING watches the box,
renews the lease, and rules on the results. The claim says who may start a box; that none runs before is seen at
the engine, under a lock of this host, so a lease that ran out while its box worked lets nobody in.
"""

import json
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from containers.box.files import write_json
from farm.bundle import MANIFEST, Bundle, parse_bundle
from farm.capture import read_tree
from farm.codec import encode
from farm.errors import BundleRefused, EngineUnavailable, FarmError, NoSpace, PatchRefused, StaleFence
from farm.fault import Fault
from farm.job import Job, JobState, ParkReason, Run, WaitsFor
from farm.ledger import Ledger
from farm.orders import BoxOrder
from farm.report.evidence import GATES
from farm.settings import Gpu
from farm.store import ArtifactStore
from farm.tree import Mode, Tree
from workers.benches import Benches, BenchFolders
from workers.boxes import Look, Sight
from workers.devices import Device, HostDevices, claim_name
from workers.gpurun import GPU_RUN, GpuRun, RunEnd, last_run, measure_order
from workers.leavings import ended
from workers.measuring import MEASUREMENTS, keep_files, with_run
from workers.places import places
from workers.preparation import make_out
from workers.spine import Advance, Failed, Hold, Notes, Park, StepOutcome, Wait

#: File of the results that holds what the parts printed.
LOGS = "logs.txt.gz"
#: A job is asked again after this time where there is no GPU, or where every GPU has a job (it is also woken).
WAITING_S, BUSY_S = 30.0, 5.0
#: A running box is looked at so often.
POLL_S = 1.0
#: After a run that came to nothing the job waits this long, doubled for each further one, up to the second.
AGAIN_S, AGAIN_MOST_S = 10.0, 3600.0
#: A job whose runs hung or lost their device so often is failed: it may be what does it.
MOST_HARM = 3

Conclude = Callable[[Mapping[str, str]], StepOutcome]


class GpuGates:
    """What a host with GPUs does for jobs that wait for one; without a GPU, nothing."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        store: ArtifactStore,
        benches: Benches,
        devices: HostDevices,
        settings: Gpu,
        state: Path,
        bundles: Callable[[Run, Job, Path], Bundle],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`bundles` writes a job's bundle into a folder."""
        self._ledger = ledger
        self._store = store
        self._benches = benches
        self._devices = devices
        self._settings = settings
        self._state = state
        self._bundles = bundles
        self._clock = clock
        self._host = socket.gethostname()

    def offer(self, job: Job, known: Mapping[str, str]) -> StepOutcome:
        """AWAITING_GPU: take a device that is free and there, for the job that waits longest.

        The job is parked when every device of this host is lost. Raises EngineUnavailable, NoSpace.
        """
        devices = self._devices.all()
        last = last_run(self._store, job, known) or GpuRun(
            number=0, host=self._host, device="", transients=job.transients
        )
        if not devices or GATES not in known or last.measured >= self._settings.runs:
            return Wait(after_s=WAITING_S)
        if last.wasted:
            pause_s = min(AGAIN_S * 2 ** (last.wasted - 1), AGAIN_MOST_S)
            if (left_s := last.ended_at + pause_s - self._clock()) > 0:
                return Wait(after_s=left_s)
        try:
            self._bundle(job)
        except (EngineUnavailable, NoSpace):
            raise
        except FarmError as error:
            return Wait(after_s=WAITING_S, notes=Notes(summary=f"its bundle cannot be written: {error}"))
        return self._take(job, devices, replace(last, number=last.number + 1))

    def _take(self, job: Job, devices: tuple[Device, ...], run: GpuRun) -> StepOutcome:
        owner = self._owner(job, run)
        holders = self._ledger.claimants([claim_name(device) for device in devices])
        free = [device for device in devices if holders.get(claim_name(device), owner) == owner]
        free = [device for device in free if not self._benches.busy(device)]
        lost = []
        if len(self._ledger.ahead(job.id, WaitsFor.GPU)) < len(free):
            for device in free:
                fence = self._ledger.claim(claim_name(device), owner, ttl_s=self._settings.lease_s)
                if fence is None:
                    continue
                if self._devices.alive(device):
                    begun = replace(run, host=self._host, device=device.index, ended=None)
                    return Advance(to=JobState.VERIFYING, notes=Notes(artifacts=self._noted(begun)))
                self._ledger.release_claim(claim_name(device), fence)
                lost.append(device.index)
        if len(lost) == len(devices):
            summary = f"no GPU of {self._host} answers ({', '.join(lost)}); see nvidia-smi and dmesg there"
            return Park(reason=ParkReason.GPU_LOST, summary=summary)
        return Wait(after_s=BUSY_S, waits=WaitsFor.GPU)

    def waits(self) -> WaitsFor | None:
        """What of the farm's own a job waits for that begins to wait: nothing, where no device is."""
        return WaitsFor.GPU if self._devices.all() else None

    def back(self) -> bool:
        """Whether a device of this host is there: what a job that lost its GPU waits for."""
        return any(self._devices.alive(device) for device in self._devices.all())

    def under_way(self, job: Job, known: Mapping[str, str]) -> bool:
        """Whether the job's state is about a run on a GPU that has not ended."""
        run = last_run(self._store, job, known)
        return run is not None and run.ended is None

    def over(self, job: Job, known: Mapping[str, str]) -> bool:
        """Whether such a run has ended, so that the job waits for the next."""
        run = last_run(self._store, job, known)
        return run is not None and run.ended is not None

    def watch(self, job: Job, known: Mapping[str, str], hold: Hold, conclude: Conclude) -> StepOutcome:
        """VERIFYING: start the run's box unless it was, renew the lease, and rule when it has ended.

        `conclude` rules on an attempt's artifacts. A box that a killed worker started is adopted.
        """
        run = last_run(self._store, job, known)
        if run is None or run.host != self._host:
            return Wait(after_s=POLL_S)  # that host's workers see it
        device = self._device(run)
        folders = self._folders(job, run)
        order = self._order(job)
        self._bundle(job)
        if not folders.order.exists():
            self._make_out(folders.out)
            write_json(folders.order, order)
        name = claim_name(device)
        fence = self._ledger.claim(name, self._owner(job, run), ttl_s=self._settings.lease_s)

        def may_start() -> bool:
            hold.check()
            return fence is not None and self._keeps(name, fence)

        look = self._benches.look(order, run.number, folders, device, may_start=may_start)
        if look.sight is Sight.RUNNING:
            return Wait(after_s=POLL_S)
        alive = look.sight is Sight.FULL or self._devices.alive(device)
        if fence is not None:
            self._give_back(name, fence)
        if look.sight is Sight.FULL:
            return self._again(run, RunEnd.NOT_STARTED, "the GPU went to another job")
        return self._ended(job, run, known, look, alive, conclude)

    def abandon(self, job: Job, known: Mapping[str, str]) -> str:
        """Remove the box of a run that is under way and give its device back; the box's last lines."""
        run = last_run(self._store, job, known)
        if run is None or run.ended is not None or run.host != self._host:
            return ""
        device = self._device(run)
        order = self._order(job)
        log = self._benches.remove(order, run.number, device)
        fence = self._ledger.claim(claim_name(device), self._owner(job, run), ttl_s=self._settings.lease_s)
        if fence is not None:
            self._give_back(claim_name(device), fence)
        return log

    def _ended(
        self, job: Job, run: GpuRun, known: Mapping[str, str], look: Look, alive: bool, conclude: Conclude
    ) -> StepOutcome:
        artifacts = {"gpu-box.log": self._store.put(look.log.encode())} if look.log else {}
        events = (ended(look),)
        try:
            left = read_tree(self._folders(job, run).out)
        except PatchRefused as error:
            return self._again(run, RunEnd.BROKEN, f"its GPU box left what it may not: {error}", artifacts)
        if LOGS in left and left[LOGS].mode is not Mode.LINK:
            artifacts[f"gpu-{LOGS}"] = self._store.put(left[LOGS].data)
        if not alive:
            summary = f"GPU {run.device} of {run.host} was gone after a run of the gates; nothing of it is used"
            return self._again(run, RunEnd.LOST, summary, artifacts)
        if look.sight is Sight.HANGS:
            reason = "" if look.ending is None else look.ending.summary
            return self._again(run, RunEnd.HUNG, f"its GPU box was stopped: {reason}", artifacts)
        if look.sight is not Sight.DONE:
            reason = "" if look.ending is None else f"{look.ending.summary}; {look.ending.next_step}"
            return self._again(run, RunEnd.BROKEN, f"its GPU box left no results: {reason}", artifacts)
        bundle = parse_bundle((places(self._state, job).gpu_bundle / MANIFEST).read_bytes())
        try:
            kept = keep_files(self._store, bundle, lambda name: _plain(left, name))
        except (OSError, BundleRefused) as error:
            said = _last_error(look.log) or str(error)
            return self._again(run, RunEnd.BROKEN, f"the gates could not be run: {said}", artifacts)
        artifacts[MEASUREMENTS] = with_run(self._store, known, kept)
        artifacts |= self._noted(run.over(RunEnd.MEASURED, self._clock()))
        outcome = conclude({**known, **artifacts})
        if not isinstance(outcome, Advance | Failed):
            return outcome
        notes = outcome.notes
        both = replace(notes, artifacts={**artifacts, **notes.artifacts}, events=(*events, *notes.events))
        return replace(outcome, notes=both)

    def _again(
        self, run: GpuRun, how: RunEnd, summary: str, artifacts: Mapping[str, str] | None = None
    ) -> StepOutcome:
        """What follows a run that came to nothing: the job waits for the next, parks, or is given up."""
        over = run.over(how, self._clock())
        notes = Notes(artifacts={**(artifacts or {}), **self._noted(over)}, summary=summary)
        if over.harmful >= MOST_HARM:
            fault = Fault.ENV if how is RunEnd.LOST else Fault.HANG
            said = f"{summary}; so ended {over.harmful} runs of it"
            return Failed(fault=fault, summary=said, notes=notes, final=True)
        if how is RunEnd.LOST:
            return Park(reason=ParkReason.GPU_LOST, summary=summary, notes=notes)
        return Advance(to=JobState.AWAITING_GPU, notes=notes, waits=self.waits())

    def _give_back(self, name: str, fence: int) -> None:
        """The lease ends, and who waits longest is asked now."""
        self._ledger.release_claim(name, fence)
        waiting = self._ledger.ahead("", WaitsFor.GPU)
        if waiting:
            self._ledger.wake(waiting[0])

    def _keeps(self, name: str, fence: int) -> bool:
        try:
            self._ledger.keep_claim(name, fence, ttl_s=self._settings.lease_s)
        except StaleFence:
            return False
        return True

    def _bundle(self, job: Job) -> None:
        folder = places(self._state, job).gpu_bundle
        if not (folder / MANIFEST).is_file():
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._bundles(self._ledger.run(job.run), job, folder)

    def _make_out(self, out: Path) -> None:
        """An empty folder for the results: the runner's alone, where it is somebody else than the candidates."""
        if not self._benches.apart:
            make_out(out)
            return
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True, mode=0o700)

    def _folders(self, job: Job, run: GpuRun) -> BenchFolders:
        at = places(self._state, job)
        return BenchFolders(bundle=at.gpu_bundle, run=at.gpu_run(run.number))

    def _device(self, run: GpuRun) -> Device:
        listed = (device for device in self._devices.all() if device.index == run.device)
        return next(listed, Device(run.device))

    def _owner(self, job: Job, run: GpuRun) -> str:
        """The run's box has the device, whichever worker looks at it."""
        return self._benches.name(self._order(job), run.number)

    def _order(self, job: Job) -> BoxOrder:
        return measure_order(self._ledger.run(job.run), job, self._settings.arch)

    def _noted(self, run: GpuRun) -> dict[str, str]:
        return {GPU_RUN: self._store.put(json.dumps(encode(run), sort_keys=True).encode())}


def _plain(tree: Tree, name: str) -> bytes:
    if name not in tree or tree[name].mode is Mode.LINK:
        raise FileNotFoundError(2, "there is no such plain file", name)
    return tree[name].data


def _last_error(log: str) -> str | None:
    """What the runner said is missing."""
    said = [line.removeprefix("error: ") for line in log.splitlines() if line.startswith("error: ")]
    return "; ".join(said) or None

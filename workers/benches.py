"""Boxes that have a device of this host: one at a time each, whoever waits for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from containers.box.gate.boxed import ENDED
from containers.engine import BoxSpec, Engine
from containers.spec import DEVICE, RUNNER_RIGHTS, Bench, BoxFolders, BoxSettings, bench_spec, box_name
from farm.orders import BoxOrder
from farm.settings import Gpu
from workers.boxes import Boxes, Look
from workers.devices import Device, HostDevices, label


@dataclass(frozen=True, kw_only=True)
class BenchFolders:
    """Where one run of a bundle lies on this host."""

    bundle: Path
    run: Path  #: holds `order.json` and `out`

    @property
    def order(self) -> Path:
        """The order; beside it is counted how often its box was started."""
        return self.run / "order.json"

    @property
    def out(self) -> Path:
        """The results."""
        return self.run / "out"


class Benches:
    """The boxes with a device, of one farm on this host."""

    def __init__(
        self, *, engine: Engine, settings: BoxSettings, gpu: Gpu, devices: HostDevices, lock: Path, apart: bool
    ) -> None:
        """`apart`: workers are root, so that the runner can be another user than the candidates."""
        self._engine = engine
        self._settings = settings
        self._gpu = gpu
        self._devices = devices
        self._lock = lock
        self.apart = apart

    def name(self, order: BoxOrder, number: int) -> str:
        """Name of the box of a job's run."""
        return box_name(self._settings.farm, order, str(number))

    def busy(self, device: Device) -> bool:
        """Whether a box runs that has the device, of any farm on this engine."""
        return any(box.running for box in self._engine.list({DEVICE: label(device)}))

    def look(
        self, order: BoxOrder, number: int, folders: BenchFolders, device: Device, *, may_start: Callable[[], bool]
    ) -> Look:
        """Start the run's box unless it was, and see how it does; see `Boxes.look`.

        `may_start` is asked while no other worker of this host starts one.
        """
        return self._boxes(number, device).look(
            order,
            _folders(folders),
            result=ENDED,
            limit_s=self._gpu.limit_s,
            ahead=lambda: () if may_start() else ("",),
        )

    def remove(self, order: BoxOrder, number: int, device: Device) -> str:
        """Remove the run's box; the last lines of its output."""
        return self._boxes(number, device).remove(order)

    def _boxes(self, number: int, device: Device) -> "_DeviceBoxes":
        devices, words = self._devices.given(device, own_image=self._settings.image is not None)
        bench = Bench(
            device=label(device),
            devices=devices,
            apart=self.apart,
            memory_bytes=self._gpu.memory_bytes,
            options=self._gpu.options,
            facts=_facts(words, self.apart),
        )
        return _DeviceBoxes(
            engine=self._engine, settings=self._settings, lock=self._lock, bench=bench, part=str(number)
        )


class _DeviceBoxes(Boxes):
    """The one place that a device has."""

    def __init__(self, *, engine: Engine, settings: BoxSettings, lock: Path, bench: Bench, part: str) -> None:
        super().__init__(engine=engine, settings=settings, lock=lock, most=1)
        self._bench = bench
        self._part = part

    def name(self, order: BoxOrder) -> str:
        """See Boxes."""
        return box_name(self._settings.farm, order, self._part)

    def _spec(self, order: BoxOrder, folders: BoxFolders) -> BoxSpec:
        return bench_spec(order, folders.workspace, folders.out, self._settings, self._bench, self._part)

    def _running(self) -> int:
        return sum(box.running for box in self._engine.list({DEVICE: self._bench.device}))


def _folders(folders: BenchFolders) -> BoxFolders:
    """As `Boxes` knows them: the bundle takes the workspace's place, and `bench_spec` mounts nothing else."""
    return BoxFolders(
        workspace=folders.bundle, out=folders.out, order=folders.order, lib=folders.bundle, recipe=folders.bundle
    )


def _facts(device: str, apart: bool) -> Mapping[str, str]:
    rights = (
        f"root in the box with {', '.join(RUNNER_RIGHTS)} alone" if apart else "as the candidates, with no rights"
    )
    return {
        "engine": f"a box: read-only root, no new privileges; the runner is {rights}",
        "network": "none (the box has none)",
        "device": device,
        "files": "the box's: bundle and toolchain read-only, results, a scratch folder in memory",
    }

"""The GPUs of this host: which there are, whether one is still there, how a box is given one."""

import re
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from containers.engine import Devices
from farm.settings import Gpu, GpuAccess

#: The list is asked for anew after this time, seconds: nvidia-smi can take a second or more.
LISTED_S = 60.0
_LINE = re.compile(r"^GPU (\d+): (.*?) \(UUID: (\S+)\)", re.MULTILINE)
#: Device files that CUDA needs beside the device's own.
_SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


@dataclass(frozen=True)
class Device:
    """One GPU of this host."""

    index: str  #: as nvidia-smi counts
    uuid: str | None = None  #: None: not listed by nvidia-smi
    model: str | None = None


def claim_name(device: Device) -> str:
    """The claim of whoever has the device."""
    return f"gpu/{label(device)}"


def label(device: Device) -> str:
    """The device among those of all hosts, `host/index`."""
    return f"{socket.gethostname()}/{device.index}"


def parse_listed(text: str) -> tuple[Device, ...]:
    """The devices in the output of `nvidia-smi -L`; those inside one (MIG) are not listed apart."""
    return tuple(Device(index, uuid, model) for index, model, uuid in _LINE.findall(text))


class HostDevices:
    """The devices that the settings leave to gates."""

    def __init__(self, settings: Gpu, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._listed: tuple[Device, ...] = ()
        self._until = 0.0

    def all(self) -> tuple[Device, ...]:
        """Every one of them, lost ones too; empty on a host without."""
        wanted = self._settings.devices
        if not wanted or self._settings.access is GpuAccess.NONE:
            return tuple(Device(index) for index in wanted if index != "auto")
        if self._clock() >= self._until:
            self._listed = parse_listed(_output(("nvidia-smi", "-L"), self._settings.probe_limit_s) or "")
            self._until = self._clock() + LISTED_S
        if wanted == ("auto",):
            return self._listed
        known = {device.index: device for device in self._listed}
        return tuple(known.get(index, Device(index)) for index in wanted)

    def alive(self, device: Device) -> bool:
        """Whether the probe finds it."""
        return _output((*self._settings.probe, device.index), self._settings.probe_limit_s) is not None

    def given(self, device: Device, *, own_image: bool) -> tuple[Devices, str]:
        """What a box gets to have this device, and that in words."""
        name = f"{device.model or 'GPU'} {device.index} of {socket.gethostname()}"
        access = self._settings.access
        match access:
            case GpuAccess.NONE:
                return Devices(), f"none: device {device.index} is pretended, the box was given none"
            case GpuAccess.REQUEST:
                pass
            case GpuAccess.NODES:
                return Devices(nodes=device_files(device)), f"{name}, by its device files"
            case GpuAccess.AUTO:
                if not own_image:
                    return Devices(nodes=device_files(device)), f"{name}, by its device files"
            case _:
                assert_never(access)
        return Devices(request=(device.uuid or device.index,)), f"{name}, asked of the engine"


def device_files(device: Device, *, dev: Path = Path("/dev"), proc: Path = Path("/proc")) -> tuple[str, ...]:
    """Files below /dev that CUDA opens for one device, those that are there.

    A device's file has its minor number, which need not be its index: the driver's information files tell.
    """
    minor = device.index
    for file in sorted(proc.glob("driver/nvidia/gpus/*/information")):
        facts = dict(_fact(line) for line in file.read_text(errors="replace").splitlines())
        if device.uuid is not None and facts.get("GPU UUID") == device.uuid:
            minor = facts.get("Device Minor", minor)
    names = (f"nvidia{minor}", *_SHARED)
    return tuple(str(dev / name) for name in names if (dev / name).exists())


def _fact(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _output(command: Sequence[str], limit_s: float) -> str | None:
    """What a program prints; None when it is not there, fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None

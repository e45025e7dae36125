"""What commands are given: makers of the things they work with, so that nothing is made that is not used."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from farm.views import CheckView, DoctorView, ServiceView, ToolchainView

if TYPE_CHECKING:
    from drivers.gates import GateDesk
    from drivers.service import FarmService


class Host(Protocol):
    """The embedded farm of a state folder: Redis and workers that live beyond a command."""

    def up(self) -> ServiceView:
        """Start what is not running; what runs now."""

    def down(self) -> ServiceView:
        """Stop it all; jobs stay where they are, and the view names them and the boxes that go on."""

    def status(self) -> ServiceView:
        """What runs now."""

    def work(self) -> int:
        """Be a worker in this process until it is stopped; its exit code."""

    def relay(self) -> int:
        """Be the gateway until it is stopped; its exit code. Raises ConfigurationError without a key."""


class MemoryHost:
    """An embedded farm that is only a flag, for tests."""

    def __init__(self) -> None:
        self.running = False
        self.jobs_left: tuple[str, ...] = ()
        self.boxes_left: tuple[str, ...] = ()

    def up(self) -> ServiceView:
        """See Host."""
        self.running = True
        return self.status()

    def down(self) -> ServiceView:
        """See Host."""
        self.running = False
        return replace(self.status(), jobs_left=self.jobs_left, boxes_left=self.boxes_left)

    def status(self) -> ServiceView:
        """See Host."""
        return ServiceView(running=self.running, state_folder="/state", workers=2 if self.running else 0)

    def work(self) -> int:
        """See Host."""
        return 0

    def relay(self) -> int:
        """See Host."""
        return 0


class ToolchainHouse(Protocol):
    """The conversion toolchain of this user."""

    def status(self) -> ToolchainView:
        """What is installed."""

    def install(self, say: Callable[[str], None]) -> ToolchainView:
        """Install what is missing, saying what is done. Raises ToolchainMissing."""


class ServiceMaker(Protocol):
    """Makes the service."""

    def __call__(self, *, embedded: bool = True) -> "FarmService":
        """`embedded`: its submits start the embedded farm, if the settings name no broker."""


class MemoryToolchain:
    """A toolchain that is only a flag, for tests."""

    def __init__(self) -> None:
        self.installed = False

    def status(self) -> ToolchainView:
        """See ToolchainHouse."""
        versions = {"cutile": "0.2.0"} if self.installed else {}
        digest = "d" * 64 if self.installed else None
        return ToolchainView(path="/toolchain", installed=self.installed, digest=digest, versions=versions)

    def install(self, say: Callable[[str], None]) -> ToolchainView:
        """See ToolchainHouse."""
        say("installing")
        self.installed = True
        return self.status()


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Makers, called when a command needs the thing."""

    service: ServiceMaker
    host: Callable[[], Host]
    doctor: Callable[[], DoctorView]
    probe: Callable[[], CheckView]  #: asks the model something tiny
    toolchain: Callable[[], ToolchainHouse]
    torch_python: Callable[[], Path]  #: an interpreter with torch, pytest and numpy
    gates: Callable[[], "GateDesk"]  #: bundles for GPU machines, and their results
    advance: Callable[[], Callable[[str], float | None]]  #: takes one step of a job in this process
    target_path: Callable[[str], str]  #: where a repo's branches can be looked at: a path or URL
    stopped: Callable[[], bool]  #: whether no worker of ours runs where one should
    pause: Callable[[float], None]  #: sleep, seconds
    clock: Callable[[], float]  #: seconds since the epoch, UTC


def wiring(context: typer.Context) -> Wiring:
    """The wiring that the program was started with."""
    found = context.find_root().obj
    assert isinstance(found, Wiring)
    return found

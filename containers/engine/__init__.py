"""The seam to container engines: what a box is made of, and the five things an engine can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A host path that the box sees."""

    source: Path  #: on the host
    target: str  #: in the box
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class BoxLimits:
    """What a box may use."""

    memory_bytes: int = 8 << 30
    pids: int = 512
    cpus: float = 2.0
    log_bytes: int = 16 << 20
    tmpfs_bytes: int = 2 << 30


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Devices of the host that a box has; without one, none."""

    request: tuple[str, ...] = ()  #: ids of GPUs that the engine itself provides, as `docker run --gpus` does
    nodes: tuple[str, ...] = ()  #: device files, each at its own path


@dataclass(frozen=True, kw_only=True)
class BoxSpec:
    """Everything an engine needs to create a box. No network, no secret, unprivileged, read-only root."""

    name: str  #: deterministic: create is get-or-create
    argv: tuple[str, ...]
    env: Mapping[str, str]
    mounts: tuple[Mount, ...]
    labels: Mapping[str, str]  #: farm, run, job, op, attempt, purpose
    workdir: str
    masks: tuple[str, ...] = ()  #: folders of the mounts that the box sees empty
    image: str | None = None  #: None: the embedded image (empty, the host's folders mounted)
    limits: BoxLimits = field(default_factory=BoxLimits)
    devices: Devices = field(default_factory=Devices)
    user: str | None = None  #: `uid:gid` in the box; None: the engine's for boxes, which has no rights
    capabilities: tuple[str, ...] = ()  #: of that user, e.g. `SETUID`; all others are dropped


@dataclass(frozen=True, kw_only=True)
class BoxStatus:
    """What the engine says about a box now."""

    name: str
    running: bool
    exit_code: int | None  #: None while running
    oom_killed: bool
    started_at: float | None  #: seconds since the epoch
    labels: Mapping[str, str]


class Engine(Protocol):
    """A container engine.

    Every method raises EngineUnavailable when the engine does not answer; that never means that a
    box failed.
    """

    def ensure(self, spec: BoxSpec) -> BoxStatus:
        """Create and start the box, or adopt the one that already has its name."""

    def inspect(self, name: str) -> BoxStatus | None:
        """Its status, or None when there is no such box."""

    def remove(self, name: str, *, grace_s: float) -> None:
        """Stop and remove it; nothing happens when it is gone already."""

    def list(self, labels: Mapping[str, str]) -> tuple[BoxStatus, ...]:
        """All boxes that carry these labels."""

    def logs(self, name: str, *, tail: int) -> str:
        """The last lines of its output."""

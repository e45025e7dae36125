"""The Docker engine against a daemon of our own that misbehaves; the real daemon is in tests/integration."""

import dataclasses
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from containers.engine import BoxSpec, Devices
from containers.engine.docker_engine import DockerEngine
from containers.engine.probe import probe
from containers.images import embedded
from farm.errors import EngineUnavailable


class Daemon(ThreadingHTTPServer):
    """Speaks as much of the API as the engine uses; `script` says how the next creates and starts go."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.boxes: dict[str, dict[str, Any]] = {}
        self.script: list[str] = []  #: `conflict`, `silent` (acts, never answers), `broken`, `no image`
        self.imported: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.closing = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Daemon

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def answer(self, code: int, body: Any = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.endswith("/version"):
            self.answer(200, {"ApiVersion": "1.41", "Version": "20"})
        elif "/images/" in path:
            self.answer(200, {"Id": "sha256:1"})
        elif path.endswith("/json") and not path.endswith("/containers/json"):
            found = self.server.boxes.get(path.split("/")[-2])
            self.answer(200, found) if found else self.answer(404, {"message": "no such container"})
        else:
            self.answer(500, {"message": "the daemon is ill"})

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        body = json.loads(sent or b"{}") if "/images/" not in path else {}
        if path.endswith("/containers/create"):
            how = self.server.script.pop(0) if self.server.script else ""
            if how == "broken":
                self.answer(500, {"message": "no room"})
                return
            name = query.split("name=")[1].split("&")[0]
            if name in self.server.boxes:
                self.answer(409, {"message": "name in use"})
                return
            if how == "no image":
                self.answer(404, {"message": "No such image: tilefarm-embedded:1"})
                return
            self.server.bodies.append(body)
            self.server.boxes[name] = {
                "Name": f"/{name}",
                "Config": {"Labels": body["Labels"]},
                "State": {
                    "Status": "created",
                    "ExitCode": 0,
                    "OOMKilled": False,
                    "StartedAt": "0001-01-01T00:00:00Z",
                },
            }
            if how == "silent":
                self.server.closing.wait(20)
            elif how == "conflict":
                self.answer(409, {"message": "name in use"})
            else:
                self.answer(201, {"Id": name, "Warnings": []})
        elif path.endswith("/images/create"):
            self.server.imported.append(query)
            self.answer(200, {"status": "sha256:1"})
        elif path.endswith("/start"):
            state = self.server.boxes[path.split("/")[-2]]["State"]
            state.update(Status="running", StartedAt="2026-11-30T04:00:00.5Z")
            self.answer(204)
        else:
            self.answer(404, {"message": "no such container"})

    def do_DELETE(self) -> None:
        self.answer(404, {"message": "no such container"})


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    made = Daemon()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.closing.set()
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def engine(daemon: Daemon) -> Iterator[DockerEngine]:
    host = f"tcp://127.0.0.1:{daemon.server_address[1]}"
    made = DockerEngine(environment={"DOCKER_HOST": host}, image=embedded(), read_timeout_s=1)
    yield made
    made.close()


SPEC = BoxSpec(name="box", argv=("true",), env={}, mounts=(), labels={"farm": "f"}, workdir="/work")


def test_a_new_box_is_created_and_started(daemon: Daemon, engine: DockerEngine) -> None:
    status = engine.ensure(SPEC)
    assert status.running
    assert status.exit_code is None
    assert status.started_at == 1796011200.5


def test_a_name_that_is_taken_at_creation_is_adopted(daemon: Daemon, engine: DockerEngine) -> None:
    daemon.script = ["conflict"]
    assert engine.ensure(SPEC).running


def test_a_create_that_times_out_and_yet_succeeds_is_adopted(daemon: Daemon, engine: DockerEngine) -> None:
    daemon.script = ["silent"]
    assert engine.ensure(SPEC).running
    assert len(daemon.bodies) == 1


def test_the_embedded_image_is_imported_when_the_daemon_lacks_it(daemon: Daemon, engine: DockerEngine) -> None:
    daemon.script = ["no image"]
    assert engine.ensure(SPEC).running
    assert len(daemon.imported) == 1
    daemon.script = ["no image"]
    other = dataclasses.replace(SPEC, name="other", image="theirs:1")
    with pytest.raises(EngineUnavailable, match="No such image"):
        engine.ensure(other)


def test_a_name_that_is_known_is_adopted_as_it_is(daemon: Daemon, engine: DockerEngine) -> None:
    engine.ensure(SPEC)
    daemon.boxes["box"]["State"].update(Status="exited", ExitCode=3)
    status = engine.ensure(SPEC)
    assert (status.running, status.exit_code) == (False, 3)


def test_an_error_of_the_daemon_never_means_that_the_box_failed(daemon: Daemon, engine: DockerEngine) -> None:
    daemon.script = ["broken"]
    with pytest.raises(EngineUnavailable, match="no room"):
        engine.ensure(SPEC)
    with pytest.raises(EngineUnavailable, match="ill"):
        engine.list({"farm": "f"})


def test_a_container_of_somebody_else_with_the_name_is_refused(daemon: Daemon, engine: DockerEngine) -> None:
    engine.ensure(SPEC)
    daemon.boxes["box"]["Config"]["Labels"] = {"farm": "f", "tilefarm.farm": "other"}
    with pytest.raises(EngineUnavailable, match="docker rm -f box"):
        engine.ensure(SPEC)


def test_what_is_gone_is_none_and_removing_it_is_nothing(engine: DockerEngine) -> None:
    assert engine.inspect("box") is None
    engine.remove("box", grace_s=0)
    assert engine.logs("box", tail=5) == ""


def test_a_box_gets_no_network_no_rights_and_a_read_only_root(daemon: Daemon, engine: DockerEngine) -> None:
    engine.ensure(SPEC)
    body = daemon.bodies[0]
    host = body["HostConfig"]
    assert body["User"] == "65534:65534"
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Memory"] == host["MemorySwap"] == SPEC.limits.memory_bytes
    assert host["PidsLimit"] == SPEC.limits.pids
    assert not [mount for mount in host["Mounts"] if "docker.sock" in mount["Source"] or not mount["ReadOnly"]]


def test_labels_carry_the_farms_prefix_at_the_engine_alone(daemon: Daemon, engine: DockerEngine) -> None:
    status = engine.ensure(dataclasses.replace(SPEC, labels={"farm": "f", "job": "r-1.relu"}))
    assert daemon.bodies[0]["Labels"] == {"tilefarm.farm": "f", "tilefarm.job": "r-1.relu"}
    assert status.labels == {"farm": "f", "job": "r-1.relu"}
    daemon.boxes["box"]["Config"]["Labels"]["job"] = "somebody else's"
    again = engine.inspect("box")
    assert again is not None
    assert again.labels == {"farm": "f", "job": "r-1.relu"}


def test_an_engine_that_docker_host_names_is_named_with_it_in_one_sentence(tmp_path: Path) -> None:
    host = f"unix://{tmp_path}/none.sock"
    found = probe({"DOCKER_HOST": host})
    assert not found.answers
    assert found.problem == (
        f"no container engine answers at {host}, which DOCKER_HOST names: No such file or directory"
    )
    assert found.next_step == "correct or unset DOCKER_HOST, or install Docker (apt install docker.io)"
    refused = probe({"DOCKER_HOST": "tcp://127.0.0.1:1"})
    assert refused.problem == (
        "no container engine answers at tcp://127.0.0.1:1, which DOCKER_HOST names: Connection refused"
    )


def test_a_missing_socket_is_named_with_what_to_install_once(tmp_path: Path) -> None:
    host = f"unix://{tmp_path}/none.sock"
    found = probe({}, default_host=host)
    assert found.problem == f"no container engine answers at {host}: No such file or directory"
    assert found.next_step == "install Docker (apt install docker.io) or start it (systemctl start docker)"


def test_a_refused_request_quotes_the_daemon_and_names_its_log(daemon: Daemon, engine: DockerEngine) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        engine.list({})
    assert str(caught.value) == (
        "the container engine could not list boxes: the daemon is ill; see the daemon's log (journalctl -u docker)"
    )


def test_a_box_gets_no_device_and_no_right_unless_its_spec_names_them(
    daemon: Daemon, engine: DockerEngine
) -> None:
    engine.ensure(SPEC)
    host = daemon.bodies[0]["HostConfig"]
    assert not host.get("DeviceRequests")
    assert not host.get("Devices")
    assert not host.get("CapAdd")
    assert (daemon.bodies[0]["User"], host["CapDrop"]) == ("65534:65534", ["ALL"])


def test_devices_user_and_rights_of_a_spec_reach_the_engine(daemon: Daemon, engine: DockerEngine) -> None:
    devices = Devices(request=("GPU-1",), nodes=("/dev/nvidia3", "/dev/nvidiactl"))
    engine.ensure(dataclasses.replace(SPEC, devices=devices, user="0:0", capabilities=("SETUID", "SETGID")))
    host = daemon.bodies[0]["HostConfig"]
    (request,) = host["DeviceRequests"]
    assert (request["DeviceIDs"], request["Count"]) == (["GPU-1"], 0)
    assert request["Capabilities"] == [["gpu", "compute", "utility"]]
    assert [device["PathOnHost"] for device in host["Devices"]] == ["/dev/nvidia3", "/dev/nvidiactl"]
    assert {device["CgroupPermissions"] for device in host["Devices"]} == {"rw"}
    assert (daemon.bodies[0]["User"], host["CapAdd"], host["CapDrop"]) == ("0:0", ["SETUID", "SETGID"], ["ALL"])
    assert not host.get("Privileged")

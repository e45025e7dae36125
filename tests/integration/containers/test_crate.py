"""A crate is built in a box: dependencies come from the cache, its own code is always compiled."""

import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from containers.access import box_user, give
from containers.engine import BoxLimits, BoxSpec, Mount
from containers.engine.docker_engine import DockerEngine
from containers.lib import ensure_lib
from containers.spec import box_env
from containers.toolchain import Toolchain, load
from containers.warm import ensure_warm

pytestmark = [pytest.mark.docker, pytest.mark.toolchain]

MANIFEST = b"""
[package]
name = "tiny-kernels"
version = "0.1.0"
edition = "2021"
[lib]
name = "tiny_kernels"
crate-type = ["cdylib"]
[dependencies]
itoa = "=1.0.15"
"""
LIB = '#[path = "../../ffi_util.rs"]\nmod ffi_util;\nmod relu { include!("../../relu_kernel/kernel.rs"); }\n'
KERNEL = """
#[no_mangle]
pub extern "C" fn tiny_relu(value: i32) -> i32 {
    itoa::Buffer::new().format(value).len() as i32
}
"""

#: Runs in the box: two builds, the second after a change, and what each said.
PROGRAM = """
import json, sys
from pathlib import Path
from containers.box.io import LocalBoxIO
from farm import crate
io = LocalBoxIO(workspace=Path("/work"), out=Path("/out"), toolchain=Path(sys.argv[1]), log=Path("/out/log"))
built = crate.build(io, Path("/work/ops") / sys.argv[2])
first = built.findings[0] if built.findings else None
print(json.dumps({
    "library": str(built.library) if built.library else None, "seconds": built.seconds,
    "file": first and first.file, "line": first and first.line, "message": first and first.message,
    "environment": built.environment,
}))
"""


@pytest.fixture(scope="module")
def own(toolchain: Toolchain) -> Iterator[Toolchain]:
    """The installed toolchain with an empty cache and CARGO_HOME of its own."""
    root = Path(tempfile.mkdtemp(prefix="tf-toolchain-")).resolve()
    root.chmod(0o755)
    for name in ("venv", "cuda", "rust"):
        (root / name).symlink_to((toolchain.root / name).resolve())
    for name in ("cargo-home", "warm"):
        (root / name).mkdir()
    shutil.copy(toolchain.root / "toolchain.json", root)
    yield load(root)
    shutil.rmtree(root)


@pytest.fixture
def work() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tf-work-"))
    for name, text in {
        "ops/kernels/Cargo.toml": MANIFEST.decode(),
        "ops/kernels/src/lib.rs": LIB,
        "ops/ffi_util.rs": "",
        "ops/relu_kernel/kernel.rs": KERNEL,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


Build = Callable[..., dict[str, Any]]


@pytest.fixture
def build(engine: DockerEngine, own: Toolchain, work: Path, tmp_path: Path) -> Build:
    """Build the crate in a box of its own; what the box printed."""
    store = Path(tempfile.mkdtemp(prefix="tf-lib-"))
    store.chmod(0o755)

    def in_box(crate: str = "kernels") -> dict[str, Any]:
        out = Path(tempfile.mkdtemp(prefix="tf-out-"))
        for folder in (work, out):
            give(folder, box_user(os.getuid(), os.getgid()))
        spec = BoxSpec(
            name=f"tilefarm-test-{uuid.uuid4().hex[:12]}",
            argv=(str(own.python), "-P", "-c", PROGRAM, str(own.root), crate),
            env=box_env(own),
            mounts=(
                Mount(source=work, target="/work", writable=True),
                Mount(source=out, target="/out", writable=True),
                Mount(source=ensure_lib(store), target="/farm/lib"),
                *(Mount(source=path, target=str(path)) for path in own.mount_folders()),
            ),
            labels={"farm": "tests"},
            workdir="/work",
            limits=BoxLimits(),
        )
        status = engine.ensure(spec)
        while status.running:
            time.sleep(0.05)
            status = engine.inspect(spec.name) or pytest.fail("the box is gone")
        log = engine.logs(spec.name, tail=200)
        engine.remove(spec.name, grace_s=0)
        shutil.rmtree(out)
        assert status.exit_code == 0, log
        answer: dict[str, Any] = json.loads(log.splitlines()[-1])
        return answer

    return in_box


@pytest.fixture(scope="module")
def warm(own: Toolchain) -> Path:
    return ensure_warm({"Cargo.toml": MANIFEST}, own, os.environ, lambda _: None).path


def test_dependencies_are_compiled_once_and_without_the_crate(warm: Path, own: Toolchain) -> None:
    names = {path.name.split("-")[0] for path in (warm / "target/release/deps").glob("*.rlib")}
    assert names == {"libitoa"}
    assert not list(warm.rglob("*tiny*"))
    said: list[str] = []
    assert ensure_warm({"Cargo.toml": MANIFEST}, own, os.environ, said.append).path == warm
    assert said == []


@pytest.mark.usefixtures("warm")
def test_a_crate_builds_offline_in_a_box_and_again_elsewhere(build: Build, work: Path) -> None:
    first = build()
    assert first["library"] == "/work/ops/kernels/target/release/libtiny_kernels.so", first
    assert (work / "ops/kernels/target/release/libtiny_kernels.so").stat().st_size > 0
    assert build()["library"] == first["library"]


@pytest.mark.usefixtures("warm")
def test_a_kernel_that_is_not_rust_fails_though_every_cache_is_warm(build: Build, work: Path) -> None:
    assert build()["library"]
    kernel = work / "ops/relu_kernel/kernel.rs"
    times = kernel.stat()
    kernel.write_text("\nthis is not rust\n")
    os.utime(kernel, ns=(times.st_atime_ns, times.st_mtime_ns))
    broken = build()
    assert broken["library"] is None
    assert (broken["file"], broken["line"]) == ("ops/relu_kernel/kernel.rs", 2)
    assert not broken["environment"]


@pytest.mark.usefixtures("warm")
def test_a_copied_tree_with_its_target_is_not_believed(build: Build, work: Path) -> None:
    assert build()["library"]
    shutil.copytree(work / "ops", work / "ops" / "copy", symlinks=True)
    (work / "ops/copy/relu_kernel/kernel.rs").write_text("nonsense")
    broken = build("copy/kernels")
    assert broken["library"] is None
    assert broken["file"] == "ops/copy/relu_kernel/kernel.rs"


def test_a_build_never_writes_into_the_cache(build: Build, warm: Path, own: Toolchain) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.lstat().st_mtime_ns, path.lstat().st_size)
            for folder in (warm, own.cargo_home)
            for path in folder.rglob("*")
        }

    before = state()
    assert build()["library"]
    assert state() == before

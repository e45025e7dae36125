"""The cluster images build on a base made from Debian's packages and this machine's Rust."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.engine.docker_engine import DockerEngine

pytestmark = [pytest.mark.docker, pytest.mark.long]

CHECKOUT = Path(__file__).parents[3]
PACKAGES = "python3,python3-venv,gcc,libc6-dev,git"
BASE = "tilefarm-test-base"


def sh(*argv: str, cwd: Path | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def base(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("debootstrap") is None or os.getuid() != 0:
        pytest.skip("debootstrap and root are needed")
    root = tmp_path_factory.mktemp("base") / "root"
    sh("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root))
    sysroot = Path(sh("rustc", "--print", "sysroot").strip())
    for name in ("bin", "lib"):
        shutil.copytree(
            sysroot / name,
            root / "usr/local" / name,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("*-src", "src", "wasm*"),
        )
    archive = root.parent / "base.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname=".")
    shutil.rmtree(root)
    sh("docker", "import", str(archive), BASE)
    archive.unlink()
    yield BASE
    for image in ("tilefarm-test-worker", "tilefarm-test-box", BASE):
        subprocess.run(("docker", "rmi", "-f", image), capture_output=True, check=False)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build context with the Dockerfile and a wheel of the project with all it needs."""
    context = tmp_path_factory.mktemp("context")
    shutil.copy(CHECKOUT / "containers/images/Dockerfile", context)
    sh(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "-w",
        str(context / "dist"),
        str(CHECKOUT),
        "-r",
        str(CHECKOUT / "requirements.lock"),
    )
    return context


def build(target: str, base: str, context: Path) -> str:
    tag = f"tilefarm-test-{target}"
    sh("docker", "build", "-q", "--target", target, "--build-arg", f"BASE_IMAGE={base}", "-t", tag, str(context))
    return tag


def run(image: str, *argv: str) -> str:
    return sh("docker", "run", "--rm", "--network", "none", "--entrypoint", argv[0], image, *argv[1:])


def test_the_box_image_runs_as_nobody_and_holds_nothing_of_the_farm(base: str, context: Path) -> None:
    image = build("box", base, context)
    assert run(image, "id", "-u").strip() == "65534"
    assert run(image, "python3", "-c", "import importlib.util as u; print(u.find_spec('farm'))").strip() == "None"


def test_the_worker_image_has_the_command_and_can_reach_the_packages(base: str, context: Path) -> None:
    image = build("worker", base, context)
    assert "submit" in run(image, "farm", "--help")
    assert (
        run(image, "/opt/tilefarm/bin/python", "-c", "import containers.toolchain, workers; print('ok')") == "ok\n"
    )


def test_a_base_image_without_rust_is_refused_with_what_it_lacks(base: str, context: Path, tmp_path: Path) -> None:
    poor = "tilefarm-test-poor"
    (tmp_path / "Dockerfile").write_text(f"FROM {base}\nRUN rm /usr/local/bin/rustc\n")
    sh("docker", "build", "-q", "-t", poor, str(tmp_path))
    argv = ("docker", "build", "--target", "box", "--build-arg", f"BASE_IMAGE={poor}", str(context))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    subprocess.run(("docker", "rmi", "-f", poor), capture_output=True, check=False)
    assert done.returncode != 0
    assert "BASE_IMAGE lacks one of" in done.stdout + done.stderr

"""The toolchain's Python part: a venv with pinned packages and the CUDA folder that they make up."""

import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from containers.toolchain.parts import key_of, step
from farm.errors import ToolchainMissing

#: Raised when the same lock file is to give another folder.
LAYOUT = b"python part 1"

#: Imported once after installing, so that read-only boxes find compiled modules.
IMPORTS = (
    "torch",
    "torch._subclasses.fake_tensor",
    "torch.overrides",
    "torch.utils._python_dispatch",
    "torch.testing",
    "torch.nn.functional",
    "torch.cuda",
    "cuda.tile",
    "cuda.tile.compilation",
    "cuda.tile.tune",
    "numpy",
    "cffi",
    "pytest",
    "_pytest.junitxml",
    "jinja2",
    "pydantic",
    "ml_dtypes",
    "anthropic",
)

_REPORT = "import json, sys, importlib.metadata as m; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"


def key(lock: Path, interpreter: Path) -> str:
    """Key of the part that `lock` and the interpreter make."""
    return key_of([LAYOUT, lock.read_bytes(), platform.python_version().encode(), str(interpreter).encode()])


def base_interpreter() -> Path:
    """The interpreter behind the running one, outside any venv."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def make(folder: Path, *, lock: Path, interpreter: Path, env: Mapping[str, str]) -> None:
    """Fill `folder` with `venv` and `cuda`. Raises ToolchainMissing when a step fails."""
    advice = "the package index must be reachable; check pip's settings and try again"
    uv = (sys.executable, "-m", "uv")
    venv = folder / "venv"
    python = venv / "bin" / "python"
    step(
        (*uv, "venv", "-q", "--relocatable", "--python", str(interpreter), str(venv)),
        env=env,
        cwd=folder,
        doing="making the toolchain's venv",
        advice="install the project's requirements again",
    )
    step(
        (*uv, "pip", "install", "-q", "--python", str(python), "-r", str(lock)),
        env=env,
        cwd=folder,
        doing="installing the toolchain's packages",
        advice=advice,
    )
    link_cuda(venv, folder / "cuda")
    compiling = {name: value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"}
    step(
        (str(python), "-c", f"import {', '.join(IMPORTS)}"),
        env=compiling,
        cwd=folder,
        doing="importing the toolchain's packages",
        advice="this machine's CPU or libraries may be too old for them",
    )


def link_cuda(venv: Path, cuda: Path) -> None:
    """Make `cuda` a CUDA toolkit folder of relative links into the venv. Raises ToolchainMissing."""
    found = sorted(venv.glob("lib/python3*/site-packages/nvidia/cu13"))
    if not found:
        raise ToolchainMissing("the pinned packages brought no nvidia/cu13 folder; requirements.txt is wrong")
    cuda.mkdir()
    base = Path("..") / found[0].relative_to(venv.parent)
    for name in ("bin", "include", "lib", "nvvm"):
        (cuda / name).symlink_to(base / name)
    (cuda / "lib64").symlink_to("lib")
    needed = ("bin/tileiras", "bin/tileirdisasm", "bin/ptxas", "include/cuda.h", "lib/libnvvm.so.4")
    gone = [name for name in needed if not (cuda / name).exists()]
    if gone:
        raise ToolchainMissing(f"the pinned packages lack {', '.join(gone)}; requirements.txt is wrong")


def versions_command(python: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Command that prints the installed versions of `names` as a JSON object."""
    return (str(python), "-c", _REPORT, *names)

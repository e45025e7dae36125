"""What a GPU machine is and has, asked in a process of its own so that the runner holds no device."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from containers.box.gate.processes import Stranger
from farm.results import MachineFacts

CPU = "cpu"  #: `Bundle.gpu` of a bundle that needs no GPU
ASK_S = 180.0
_DISTRIBUTIONS = ("torch", "cuda-tile", "pytest", "numpy", "cffi")
_BECOME = """\
import os
os.setgroups([])
os.setgid({uid})
os.setuid({uid})
import containers.box.gate.parts, pytest
"""
_ASK_TORCH = """\
import json, torch
facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": None}
if torch.cuda.is_available():
    device = torch.cuda.get_device_properties(0)
    facts |= {"gpu": device.name, "arch": f"sm_{device.major}{device.minor}", "memory": device.total_memory}
    facts |= {"uuid": str(getattr(device, "uuid", "")) or None}
print(json.dumps(facts))
"""


class Machine(NamedTuple):
    """The machine, and what keeps the gates from running on it."""

    facts: MachineFacts
    gpu_uuid: str | None
    problems: tuple[str, ...]  #: each with what to do


def look(environment: Mapping[str, str], prefix: Sequence[str], gpu: str, stranger: Stranger | None) -> Machine:
    """Look at this machine as a part's process would see it. `gpu` is the bundle's."""
    torch, trouble = _torch(environment, prefix, stranger)
    versions = {name: found for name in _DISTRIBUTIONS if (found := _version(name)) is not None}
    versions |= {name: str(torch[name]) for name in ("torch", "cuda") if torch.get(name)}
    tileiras = _tileiras(environment)
    if tileiras is not None:
        versions["tileiras"] = _said_version(tileiras, environment)
    facts = MachineFacts(
        python=".".join(map(str, sys.version_info[:3])),
        gpu=torch.get("gpu"),
        arch=torch.get("arch"),
        memory_bytes=torch.get("memory"),
        driver=_driver(),
        versions=versions,
    )
    problems = [trouble] if trouble else []
    if trouble is None and gpu != CPU and facts.gpu is None:
        problems.append("torch sees no GPU: run on a GPU machine, with a driver that fits torch's CUDA")
    problems += _missing(facts, gpu, tileiras)
    return Machine(facts=facts, gpu_uuid=torch.get("uuid"), problems=tuple(problems))


def _missing(facts: MachineFacts, gpu: str, tileiras: str | None) -> Iterator[str]:
    if "pytest" not in facts.versions:
        yield "pytest is not installed for this Python: pip install pytest"
    if gpu == CPU:
        return
    if "cuda-tile" not in facts.versions:
        yield "cuda-tile is not installed for this Python: pip install cuda-tile, or put it on PYTHONPATH"
    if "cffi" not in facts.versions:
        yield "cffi is not installed for this Python: pip install cffi, or put it on PYTHONPATH"
    if tileiras is None:
        yield "no tileiras: put it on PATH, or let CUTILE_TILEIRAS_PATH name it"


def _torch(
    environment: Mapping[str, str], prefix: Sequence[str], stranger: Stranger | None
) -> tuple[dict[str, Any], str | None]:
    become = "" if stranger is None else _BECOME.format(uid=stranger.uid)
    command = (*prefix, sys.executable, "-c", become + _ASK_TORCH)
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {}, f"torch cannot be asked: {error}"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return {}, f"torch cannot be imported ({last}): install torch for {sys.executable}"
    facts: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return facts, None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _tileiras(environment: Mapping[str, str]) -> str | None:
    named = environment.get("CUTILE_TILEIRAS_PATH")
    if named and os.access(named, os.X_OK):
        return named
    found = shutil.which("tileiras", path=environment.get("PATH"))
    if found is not None:
        return found
    folders = (Path(entry) / "nvidia" / "cu13" / "bin" / "tileiras" for entry in sys.path)
    return next((str(path) for path in folders if os.access(path, os.X_OK)), None)


def _said_version(program: str, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            (program, "--version"), env=dict(environment), capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not answer: {error}"
    numbers = re.findall(r"\d+\.\d+(?:\.\d+)*", done.stdout + done.stderr)
    return max(numbers, key=lambda text: text.count("."), default="unknown")


def _driver() -> str | None:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"\b\d{3}\.\d+(?:\.\d+)?\b", text)
    return found.group() if found else None
